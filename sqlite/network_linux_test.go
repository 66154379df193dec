package sqlite

import "testing"

func TestNetworkFileSystemsAreKnownByTheirNumbers(t *testing.T) {
	for magic, name := range map[int64]string{0x6969: "NFS", 0xFF534D42: "CIFS", -0xACB2BE /* the same, as a negative int32 */ : "CIFS", 0x01021997: "9P", 0x00C36400: "Ceph"} {
		check(t, networkName(magic) == name, "%#x is %s, got %q", magic, name, networkName(magic))
	}
	for _, local := range []int64{0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x794c7630, 0x2fc12fc1} { // ext4, xfs, btrfs, tmpfs, overlay, zfs
		check(t, networkName(local) == "", "%#x is local, got %q", local, networkName(local))
	}
}
