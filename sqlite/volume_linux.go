package sqlite

import (
	"path/filepath"
	"syscall"
)

// Magic numbers of file systems whose locks cannot be trusted across machines.
//
// Source: statfs(2), linux/magic.h.
var networkMagic = map[int64]string{
	0x6969: "NFS", 0x517B: "SMB", 0xFF534D42: "CIFS", 0xFE534D42: "SMB2", 0x564C: "NCP",
	0x5346414F: "AFS", 0x73757245: "Coda", 0x00C36400: "Ceph", 0x0BD00BD0: "Lustre",
	0x01021997: "9P", 0x7461636F: "OCFS2", 0x01161970: "GFS2", 0x19830326: "BeeGFS", 0x47504653: "GPFS", 0xAAD7AAEA: "PanFS",
}

// networkFS names the network file system that a folder lies on; "" = none.
func networkFS(dir string) string {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil {
		return ""
	}
	return networkName(int64(st.Type))
}

func networkName(magic int64) string { return networkMagic[magic&0xFFFFFFFF] }

// volume reads the size of a file's volume and what an ordinary user may still
// write to it, in bytes.
func volume(path string) (total, free int64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(path), &st); err != nil {
		return 0, 0, err
	}
	return int64(st.Blocks) * st.Bsize, int64(st.Bavail) * st.Bsize, nil
}
