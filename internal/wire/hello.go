package wire

import (
	"net/netip"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard"
)

func appendHello(b []byte, num protowire.Number, h *gozzard.Hello) []byte {
	b, start := begin(b, num)
	b = appendHost(b, 1, &h.Host)
	for i := range h.Open {
		b = appendOpReport(b, 2, &h.Open[i])
	}
	b = appendUint(b, 3, h.Run)
	b = appendUint(b, 4, h.NewestGen)
	b = appendBool(b, 9, h.Kept)
	return end(b, start)
}

func decodeHello(d decoder, h *gozzard.Hello) error {
	for d.next() {
		switch d.num {
		case 1:
			d.nested(decodeHost(d.message("host"), &h.Host))
		case 2:
			var o *gozzard.OpReport
			h.Open, o = grow(&d, h.Open, MaxReports)
			d.nested(decodeOpReport(d.message("open operation"), o))
		case 3:
			h.Run = d.uint()
		case 4:
			h.NewestGen = d.uint()
		case 9:
			h.Kept = d.bool()
		default:
			d.skip()
		}
	}

	return d.err
}

func appendHost(b []byte, num protowire.Number, h *gozzard.HostInfo) []byte {
	b, start := begin(b, num)
	b = appendString(b, 1, string(h.Agent))
	for _, a := range h.Addrs {
		b = appendAddr(b, 2, a)
	}

	b = appendString(b, 3, h.Hostname)
	b = appendString(b, 4, h.OS)
	b = appendString(b, 5, h.Arch)
	b = appendString(b, 6, h.Version)
	b = appendString(b, 7, h.BootID)
	b = appendInt(b, 8, h.StartedAt)
	b = appendInt(b, 9, int64(h.CPUs))
	b = appendInt(b, 10, h.MemBytes)
	for _, s := range h.Degraded {
		b = appendText(b, 11, s)
	}

	b = appendUint(b, 12, uint64(h.Mode))
	b = appendString(b, 13, h.PolicyDigest)
	b = appendUint(b, 14, uint64(h.Form))
	b = appendString(b, 15, h.DefaultAccount)
	b = appendBool(b, 16, h.History)
	b = appendBool(b, 17, h.Files)
	b = appendString(b, 18, h.Metrics)
	return end(b, start)
}

func decodeHost(d decoder, h *gozzard.HostInfo) error {
	for d.next() {
		switch d.num {
		case 1:
			h.Agent = gozzard.AgentID(d.string())
		case 2:
			var a *gozzard.HostAddr
			h.Addrs, a = grow(&d, h.Addrs, MaxAddrs)
			d.nested(decodeAddr(d.message("address"), a))
		case 3:
			h.Hostname = d.string()
		case 4:
			h.OS = d.string()
		case 5:
			h.Arch = d.string()
		case 6:
			h.Version = d.string()
		case 7:
			h.BootID = d.string()
		case 8:
			h.StartedAt = d.int64()
		case 9:
			h.CPUs = d.int()
		case 10:
			h.MemBytes = d.int64()
		case 11:
			var s *string
			h.Degraded, s = grow(&d, h.Degraded, MaxDegraded)
			*s = d.string()
		case 12:
			h.Mode = 0
			if m := d.uint(); m <= uint64(gozzard.ModeUser) {
				h.Mode = gozzard.AgentMode(m)
			}
		case 13:
			h.PolicyDigest = d.string()
		case 14:
			h.Form = d.uint32()
		case 15:
			h.DefaultAccount = d.string()
		case 16:
			h.History = d.bool()
		case 17:
			h.Files = d.bool()
		case 18:
			h.Metrics = d.string()
		default:
			d.skip()
		}
	}

	return d.err
}

// appendAddr writes no zone: gozzard.ParseIP rejects zones.
func appendAddr(b []byte, num protowire.Number, a gozzard.HostAddr) []byte {
	b, start := begin(b, num)
	b = appendInt(b, 1, int64(a.Cloud))
	if a.IP.IsValid() {
		b = appendBytes(b, 2, a.IP.AsSlice())
	}
	return end(b, start)
}

func decodeAddr(d decoder, a *gozzard.HostAddr) error {
	for d.next() {
		switch d.num {
		case 1:
			a.Cloud = d.int()
		case 2:
			v := d.bytes()
			ip, ok := netip.AddrFromSlice(v)
			if !ok {
				d.fail("an address has 4 or 16 bytes, has %d", len(v))
			}
			a.IP = ip
		default:
			d.skip()
		}
	}

	return d.err
}
