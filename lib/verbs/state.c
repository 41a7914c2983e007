// SPDX-License-Identifier: GPL-2.0-only
/* The connection's states and the moves between them. The diagram stands in <rail/verbs.h>. */
#include <linux/bits.h>
#include <rail/verbs.h>

static const struct {
	const char *name;
	u8 to;
} rail_states[RAIL_NR_STATES] = {
	[RAIL_IDLE] = { "idle", BIT(RAIL_RESOLVING) | BIT(RAIL_CONNECTING) | BIT(RAIL_CLOSING) },
	[RAIL_RESOLVING] = { "resolving", BIT(RAIL_CONNECTING) | BIT(RAIL_CLOSING) },
	[RAIL_CONNECTING] = { "connecting", BIT(RAIL_UP) | BIT(RAIL_CLOSING) },
	[RAIL_UP] = { "up", BIT(RAIL_CLOSING) },
	[RAIL_CLOSING] = { "closing", BIT(RAIL_DEAD) },
	[RAIL_DEAD] = { "dead", 0 },
};

/**
 * rail_state_name - a state's name for people
 * @state: the state
 *
 * Return: a constant string; "?" for what is no state.
 */
const char *rail_state_name(enum rail_state state)
{
	return (unsigned int)state < RAIL_NR_STATES ? rail_states[state].name : "?";
}
EXPORT_SYMBOL_GPL(rail_state_name);

/**
 * rail_state_may - whether a connection may move from one state to another
 * @from: where it is
 * @to: where it would go
 *
 * Return: true if it may.
 */
bool rail_state_may(enum rail_state from, enum rail_state to)
{
	return (unsigned int)from < RAIL_NR_STATES && (unsigned int)to < RAIL_NR_STATES &&
	       rail_states[from].to & BIT(to);
}
EXPORT_SYMBOL_GPL(rail_state_may);
