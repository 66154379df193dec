package redisbox

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/settle-go/settle/mailbox"
)

// Defaults of [Config].
const (
	DefaultChannel   = "settle:nudge"
	DefaultTimeout   = 3 * time.Second
	DefaultHeartbeat = 5 * time.Second
)

// Config says where answers lie and how a box waits for them.
type Config struct {
	// Redis is the server, the Sentinels (Sentinel.MasterSet) or the Cluster, with
	// credentials and TLS. What concerns repeats, caching and the number of
	// connections is set by this package; replicas, RESP2 and, in a destructive
	// box, ConnLifetime are refused.
	Redis rueidis.ClientOption
	// Wait is how the box waits. See [mailbox.Config].
	Wait mailbox.Config
	// Channel is where nodes publish the key that they wrote. "" = "settle:nudge".
	Channel string
	// Timeout bounds making a connection, and each exchange on one. 0 = 3 s;
	// 10 ms to 1 min.
	Timeout time.Duration
	// Heartbeat is how often the subscription is pinged. 0 = 5 s; 10 ms to 1 min.
	Heartbeat time.Duration
	// Destructive makes a look remove what it finds, by GETDEL: of several that
	// wait for one key only one gets the answer, and whoever dies between the look
	// and the commit loses it. Every look that has found something is then the
	// last one, see [mailbox.ConsumedError].
	Destructive bool
	// AllowEviction goes on where the server may evict answers and budgets. Waits
	// may then end without a result, and spent budgets begin anew.
	AllowEviction bool
}

func (c Config) ready() (Config, error) {
	if c.Channel == "" {
		c.Channel = DefaultChannel
	}
	c.Timeout, c.Heartbeat = cmp.Or(c.Timeout, DefaultTimeout), cmp.Or(c.Heartbeat, DefaultHeartbeat)
	o := &c.Redis
	var faults []error
	if len(o.InitAddress) == 0 {
		faults = append(faults, errors.New("redisbox: Redis.InitAddress is empty"))
	}
	if o.AlwaysRESP2 {
		faults = append(faults, errors.New("redisbox: Redis.AlwaysRESP2: the subscription's heartbeat needs RESP3"))
	}
	if o.ReplicaOnly || o.SendToReplicas != nil || len(o.Standalone.ReplicaAddress) > 0 {
		faults = append(faults, errors.New("redisbox: Redis reads from replicas: an answer is looked for where it was written"))
	}
	if o.ConnLifetime > 0 && c.Destructive {
		faults = append(faults, errors.New("redisbox: Redis.ConnLifetime repeats commands, which a destructive look does not bear"))
	}
	faults = append(faults, within("Timeout", c.Timeout), within("Heartbeat", c.Heartbeat))

	// A command that is repeated after its reply was lost finds nothing the
	// second time, and "nothing" would mean "not yet".
	o.DisableRetry = true
	o.DisableCache = true
	o.PipelineMultiplex = -1 // one connection for commands
	o.BlockingPipeline = -1  // also for many
	// Its end is noticed when it comes, not at the next command.
	o.AlwaysPipelining, o.DisableAutoPipelining = true, false
	o.Dialer.Timeout = cmp.Or(o.Dialer.Timeout, c.Timeout)
	o.ConnWriteTimeout = cmp.Or(o.ConnWriteTimeout, c.Timeout)
	o.Sentinel.TopologyRefreshInterval = cmp.Or(o.Sentinel.TopologyRefreshInterval, 5*time.Second)
	if o.ClientName == "" {
		o.ClientName = "settle-mailbox"
	}
	return c, errors.Join(faults...)
}

func within(setting string, d time.Duration) error {
	if d < 10*time.Millisecond || d > time.Minute {
		return fmt.Errorf("redisbox: %s is %s: want 10ms to 1m", setting, d)
	}
	return nil
}
