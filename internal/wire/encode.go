package wire

import "encoding/binary"

// AppendArrayLen appends the length of an array.
func AppendArrayLen(b []byte, n int, flexible bool) []byte {
	if flexible {
		return binary.AppendUvarint(b, uint64(n)+1)
	}
	return binary.BigEndian.AppendUint32(b, uint32(n))
}

// AppendNullArray appends an array that is not there.
func AppendNullArray(b []byte, flexible bool) []byte {
	if flexible {
		return append(b, 0)
	}
	return binary.BigEndian.AppendUint32(b, 1<<32-1)
}

// AppendString appends a string.
func AppendString[S []byte | string](b []byte, s S, flexible bool) []byte {
	if flexible {
		b = binary.AppendUvarint(b, uint64(len(s))+1)
	} else {
		b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
	}
	return append(b, s...)
}

// AppendNullableString appends a string; nil is null.
func AppendNullableString(b []byte, s *string, flexible bool) []byte {
	switch {
	case s != nil:
		return AppendString(b, *s, flexible)
	case flexible:
		return append(b, 0)
	}
	return append(b, 0xff, 0xff)
}
