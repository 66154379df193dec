package settle

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/google/uuid"
)

// ID names one job for ever. It is made by the client, so that an enqueue
// whose answer was lost can be repeated safely. No order depends on it.
// The zero ID means "none".
type ID [16]byte

// NewID returns a random UUIDv7.
func NewID() ID { return ID(uuid.Must(uuid.NewV7())) }

// DeriveID returns the UUIDv8 that the given parts always lead to. Parts are
// length-prefixed before hashing, so ("a","bc") and ("ab","c") differ.
func DeriveID(parts ...[]byte) ID {
	h := sha256.New()
	var size [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(p)))
		h.Write(size[:])
		h.Write(p)
	}
	var id ID
	copy(id[:], h.Sum(nil))
	id[6] = id[6]&0x0f | 0x80 // version 8: derived by rules of our own (RFC 9562)
	id[8] = id[8]&0x3f | 0x80
	return id
}

// ParseID reads the text form of an ID: 8-4-4-4-12 hexadecimal digits.
func ParseID(s string) (ID, error) {
	u, err := uuid.Parse(s)
	if err != nil || len(s) != 36 {
		return ID{}, fmt.Errorf("job id %q: want 36 characters such as 0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2a", clip(s, 60))
	}
	return ID(u), nil
}

// IsZero reports whether the ID names nothing.
func (id ID) IsZero() bool { return id == ID{} }

// String returns the 36-character text form.
func (id ID) String() string { return uuid.UUID(id).String() }

// MarshalText makes an ID a JSON string. A zero ID becomes "".
func (id ID) MarshalText() ([]byte, error) {
	if id.IsZero() {
		return nil, nil
	}
	return []byte(id.String()), nil
}

// UnmarshalText reads what MarshalText wrote.
func (id *ID) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*id = ID{}
		return nil
	}
	v, err := ParseID(string(b))
	if err == nil {
		*id = v
	}
	return err
}
