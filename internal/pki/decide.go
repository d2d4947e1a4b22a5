package pki

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Kept is what an earlier converge left.
type Kept struct {
	// Authority is nil when there is none.
	Authority *Pair
	// Hosts are certificates by stem; those of hosts that are no longer bound may be among them.
	Hosts map[string]Pair
}

// A Due host needs a new certificate.
type Due struct {
	Host Host
	Why  string
}

// A Decision is what stays and what is to be made. It holds nothing random, so the same Kept, hosts and time give the same.
type Decision struct {
	// Authority says why a new one is to be made; empty when the kept one stays.
	Authority string
	// Lost says that the authority which made the kept certificates is gone or unsound, and not only old.
	Lost bool
	// Due are the hosts to make certificates for, in the order of their stems; with a new authority that is each.
	Due []Due
	// Stay are the kept certificates that stay, by stem.
	Stay map[string]Pair
}

// Decide says what is due for these hosts.
func Decide(kept Kept, hosts []Host, now time.Time) Decision {
	d := Decision{Stay: map[string]Pair{}}
	err := errors.New("there is none")
	if kept.Authority != nil {
		err = CheckAuthority(*kept.Authority, now)
	}
	if err != nil {
		d.Authority = err.Error()
		d.Lost = !errors.Is(err, ErrAging) && (kept.Authority != nil || len(kept.Hosts) > 0)
	}
	for _, host := range sorted(hosts) {
		pair, there := kept.Hosts[host.Stem()]
		switch {
		case d.Authority != "":
			d.Due = append(d.Due, Due{host, "a new authority"})
		case !there:
			d.Due = append(d.Due, Due{host, "there is none"})
		default:
			if err := CheckHost(*kept.Authority, pair, host, now); err != nil {
				d.Due = append(d.Due, Due{host, err.Error()})
				continue
			}
			d.Stay[host.Stem()] = pair
		}
	}
	return d
}

// Make makes the certificates that are due, with an authority that can go on, and returns all that the hosts need, by stem.
func (d Decision) Make(authority Pair, now time.Time) (map[string]Pair, error) {
	all := map[string]Pair{}
	for stem, pair := range d.Stay {
		all[stem] = pair
	}
	for _, due := range d.Due {
		pair, err := NewHost(authority, due.Host, now)
		if err != nil {
			return nil, fmt.Errorf("certificate of %s: %w", due.Host.Name, err)
		}
		all[due.Host.Stem()] = pair
	}
	return all, nil
}

// sorted gives each host once, by stem.
func sorted(hosts []Host) []Host {
	hosts = slices.SortedFunc(slices.Values(hosts), func(a, b Host) int { return cmp.Compare(a.Stem(), b.Stem()) })
	return slices.Compact(hosts)
}
