/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What of the client decides without doing: the choice of a path, states, pauses. No locks, no
 * device; KUnit drives it alone.
 *
 * Policies
 *
 *	round-robin	in turn
 *	min-inflight	with the fewest requests outstanding
 *	min-latency	with the fastest heartbeat
 *	numa		in turn among those on the submitting CPU's node; others if none is
 *	weighted	each gets requests in inverse proportion to the time it takes for one
 *
 * Whatever the policy, a path that came back and has not yet proved itself is taken only if there
 * is no other.
 */
#ifndef RTRS_CLIENT_PURE_H
#define RTRS_CLIENT_PURE_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/percpu.h>
#include <linux/types.h>

/* Back-off: the first pause, which doubles, and the longest. */
#define CLT_BACKOFF_MS		250
#define CLT_BACKOFF_MAX_MS	20000
/* A path that came back proves itself so long, and twice as long for each time it flapped. */
#define CLT_PROVE_MS		500
#define CLT_PROVE_MAX_MS	60000

enum clt_policy {
	CLT_ROUND_ROBIN,
	CLT_MIN_INFLIGHT,
	CLT_MIN_LATENCY,
	CLT_NUMA,
	CLT_WEIGHTED,
	CLT_NR_POLICIES,
};

enum clt_path_state {
	CLT_PATH_OFF,
	CLT_PATH_WAITING,
	CLT_PATH_CONNECTING,
	CLT_PATH_UP,
	CLT_PATH_CLOSING,
	CLT_PATH_GONE,
	CLT_NR_PATH_STATES,
};

/* May a lane be used? */
enum clt_usable {
	CLT_UNUSABLE,
	CLT_UNPROVED,
	CLT_USABLE,
};

/**
 * struct clt_lane - a path as policies see it
 * @usable: enum clt_usable; path's work to write, read anywhere
 * @node: NUMA node of its device; set before it is usable
 * @latency_ns: of its heartbeats
 * @service_ns: what a request takes, averaged; kept with CLT_WEIGHTED only
 * @vtime: per CPU: service given so far, in ns; that CPU's submitters'
 * @inflight: requests outstanding; kept with CLT_MIN_INFLIGHT only
 */
struct clt_lane {
	u8 usable;
	int node;
	u64 latency_ns;
	u64 service_ns;
	u64 __percpu *vtime;
	atomic_t inflight ____cacheline_aligned_in_smp;
};

/**
 * struct clt_turn - whose turn it is on a CPU
 * @last: lane that was taken last
 * @vnow: when a request began last, on the clock that service given makes
 * @guess: what a request takes there
 */
struct clt_turn {
	u32 last;
	u64 vnow;
	u64 guess;
};

struct clt_lane *clt_pick(enum clt_policy policy, struct clt_lane * const *lanes, u32 n,
			  struct clt_turn *turn, int node);
void clt_lane_served(struct clt_lane *lane, u64 ns);
const char *clt_policy_name(enum clt_policy policy);
const char *clt_policy_short(enum clt_policy policy);
int clt_policy_parse(const char *text);
bool clt_path_may(enum clt_path_state from, enum clt_path_state to);
unsigned int clt_backoff_ms(unsigned int tries, u32 random);
unsigned int clt_prove_ms(unsigned int flaps);
bool clt_small_fits(bool read, int error, u32 asked, u32 got);

#endif /* RTRS_CLIENT_PURE_H */
