// SPDX-License-Identifier: GPL-2.0-only
/* The choice of a path, states, pauses. The rules stand in client_pure.h and client.h. */
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/numa.h>
#include <linux/string.h>
#include "client_pure.h"

static const struct {
	const char *name;
	const char *abbrev;
} policies[CLT_NR_POLICIES] = {
	[CLT_ROUND_ROBIN] = { "round-robin", "RR" },
	[CLT_MIN_INFLIGHT] = { "min-inflight", "MI" },
	[CLT_MIN_LATENCY] = { "min-latency", "ML" },
	[CLT_NUMA] = { "numa", "NU" },
	[CLT_WEIGHTED] = { "weighted", "WE" },
};

static u8 lane_usable(const struct clt_lane *lane)
{
	/* Pairs with the release in clt_link_found(): a usable path is whole. */
	return smp_load_acquire(&lane->usable);
}

/* The next in turn of those at least so usable; with a node, of those on it. */
static struct clt_lane *pick_next(struct clt_lane * const *lanes, u32 n, struct clt_turn *turn,
				  u8 usable, int node)
{
	u32 i, at = turn->last;

	for (i = 0; i < n; i++) {
		at = at + 1 < n ? at + 1 : 0;
		if (lane_usable(lanes[at]) < usable)
			continue;
		if (node != NUMA_NO_NODE && lanes[at]->node != node)
			continue;
		turn->last = at;
		return lanes[at];
	}
	return NULL;
}

/* What the policy wants to have as little of as it can get. */
static u64 lane_cost(enum clt_policy policy, const struct clt_lane *lane)
{
	if (policy == CLT_MIN_INFLIGHT)
		return atomic_read(&lane->inflight);
	return READ_ONCE(lane->latency_ns);
}

/* The cheapest; among equals the next in turn. */
static struct clt_lane *pick_cheapest(enum clt_policy policy, struct clt_lane * const *lanes, u32 n,
				      struct clt_turn *turn, u8 usable)
{
	struct clt_lane *best = NULL;
	u32 i, best_at = 0, at = turn->last;
	u64 cost, best_cost = 0;

	for (i = 0; i < n; i++) {
		at = at + 1 < n ? at + 1 : 0;
		if (lane_usable(lanes[at]) < usable)
			continue;
		cost = lane_cost(policy, lanes[at]);
		if (!best || cost < best_cost) {
			best = lanes[at];
			best_cost = cost;
			best_at = at;
		}
	}
	if (best)
		turn->last = best_at;
	return best;
}

/* A lane nothing is known of counts like the last one that something was. */
static u64 lane_service(const struct clt_lane *lane, const struct clt_turn *turn)
{
	return READ_ONCE(lane->service_ns) ?: turn->guess ?: 1;
}

/*
 * When its next request would begin, on the clock that service given makes. A lane that was away,
 * or had been slow once, has no claim on the time it missed: it may be one request behind, no
 * more.
 */
static u64 lane_start(const struct clt_lane *lane, const struct clt_turn *turn, u64 service)
{
	u64 vtime = *this_cpu_ptr(lane->vtime);

	return vtime + service < turn->vnow ? turn->vnow - service : vtime;
}

/* The lane on which, with the service it was given on this CPU, a request would end first. */
static struct clt_lane *pick_weighted(struct clt_lane * const *lanes, u32 n, struct clt_turn *turn,
				      u8 usable)
{
	u64 service, start, best_start = 0, best_service = 0;
	struct clt_lane *best = NULL;
	u32 i, best_at = 0, at = turn->last;

	for (i = 0; i < n; i++) {
		at = at + 1 < n ? at + 1 : 0;
		if (lane_usable(lanes[at]) < usable)
			continue;
		service = lane_service(lanes[at], turn);
		start = lane_start(lanes[at], turn, service);
		if (best && start + service >= best_start + best_service)
			continue;
		best = lanes[at];
		best_start = start;
		best_service = service;
		best_at = at;
	}
	if (!best)
		return NULL;
	*this_cpu_ptr(best->vtime) = best_start + best_service;
	turn->vnow = max(turn->vnow, best_start);
	turn->guess = best_service;
	turn->last = best_at;
	return best;
}

static struct clt_lane *pick(enum clt_policy policy, struct clt_lane * const *lanes, u32 n,
			     struct clt_turn *turn, int node, u8 usable)
{
	struct clt_lane *lane;

	switch (policy) {
	case CLT_MIN_INFLIGHT:
	case CLT_MIN_LATENCY:
		return pick_cheapest(policy, lanes, n, turn, usable);
	case CLT_WEIGHTED:
		return pick_weighted(lanes, n, turn, usable);
	case CLT_NUMA:
		lane = pick_next(lanes, n, turn, usable, node);
		if (lane)
			return lane;
		fallthrough;
	default:
		return pick_next(lanes, n, turn, usable, NUMA_NO_NODE);
	}
}

/**
 * clt_pick - choose a path
 * @policy: by which rule
 * @lanes: paths there are
 * @n: how many
 * @turn: this CPU's turn
 * @node: this CPU's node
 *
 * Context: any, preemption disabled.
 * Return: a lane; NULL when none is usable.
 */
struct clt_lane *clt_pick(enum clt_policy policy, struct clt_lane * const *lanes, u32 n,
			  struct clt_turn *turn, int node)
{
	return pick(policy, lanes, n, turn, node, CLT_USABLE) ?:
	       pick(policy, lanes, n, turn, node, CLT_UNPROVED);
}

/**
 * clt_lane_served - a request took so long
 * @lane: on this lane
 * @ns: time from submission to answer
 *
 * An average over the last sixteen or so. Two CPUs at once may lose one of them.
 */
void clt_lane_served(struct clt_lane *lane, u64 ns)
{
	u64 old = READ_ONCE(lane->service_ns);

	WRITE_ONCE(lane->service_ns, old ? old - old / 16 + ns / 16 : ns);
}

/**
 * clt_policy_name - as people write it
 * @policy: the policy
 */
const char *clt_policy_name(enum clt_policy policy)
{
	return policies[policy].name;
}

/**
 * clt_policy_short - its abbreviation
 * @policy: the policy
 */
const char *clt_policy_short(enum clt_policy policy)
{
	return policies[policy].abbrev;
}

/**
 * clt_policy_parse - a policy by its name, abbreviation or number
 * @text: from a user
 *
 * Return: enum clt_policy or -EINVAL.
 */
int clt_policy_parse(const char *text)
{
	unsigned int nr;
	int i;

	for (i = 0; i < CLT_NR_POLICIES; i++)
		if (sysfs_streq(text, policies[i].name) || sysfs_streq(text, policies[i].abbrev))
			return i;
	if (kstrtouint(text, 10, &nr) || nr >= CLT_NR_POLICIES)
		return -EINVAL;
	return nr;
}

/**
 * clt_path_may - is it a legal move of a path's state?
 * @from: present
 * @to: next
 */
bool clt_path_may(enum clt_path_state from, enum clt_path_state to)
{
	static const u8 next[CLT_NR_PATH_STATES] = {
		[CLT_PATH_OFF] = BIT(CLT_PATH_CONNECTING) | BIT(CLT_PATH_GONE),
		[CLT_PATH_WAITING] = BIT(CLT_PATH_CONNECTING) | BIT(CLT_PATH_OFF),
		[CLT_PATH_CONNECTING] = BIT(CLT_PATH_UP) | BIT(CLT_PATH_CLOSING),
		[CLT_PATH_UP] = BIT(CLT_PATH_CLOSING),
		[CLT_PATH_CLOSING] = BIT(CLT_PATH_WAITING) | BIT(CLT_PATH_OFF),
	};

	return next[from] & BIT(to);
}

/**
 * clt_backoff_ms - pause before the next attempt
 * @tries: attempts in vain so far
 * @random: any number: clients that lost the same server do not come back at the same time
 *
 * Return: between half of a pause that doubles and the whole of it.
 */
unsigned int clt_backoff_ms(unsigned int tries, u32 random)
{
	unsigned int ms = CLT_BACKOFF_MAX_MS;

	if (tries < 16)
		ms = min_t(unsigned int, CLT_BACKOFF_MS << tries, CLT_BACKOFF_MAX_MS);
	return ms / 2 + random % (ms / 2 + 1);
}

/**
 * clt_prove_ms - how long a path that came back has to prove itself
 * @flaps: times it went down soon after it was up; 0: it has not
 */
unsigned int clt_prove_ms(unsigned int flaps)
{
	if (flaps >= 16)
		return CLT_PROVE_MAX_MS;
	return min_t(unsigned int, CLT_PROVE_MS << flaps, CLT_PROVE_MAX_MS);
}

/**
 * clt_small_fits - is an answer to a small request of the right length?
 * @read: of a read
 * @error: the answer's
 * @asked: bytes of data that the request spoke of
 * @got: bytes that came with the answer
 *
 * A server that brings less leaves in its place what was there before, perhaps of another user's
 * disk; one that brings something with an error or for a write is not what it said it was.
 */
bool clt_small_fits(bool read, int error, u32 asked, u32 got)
{
	return got == (read && !error ? asked : 0);
}
