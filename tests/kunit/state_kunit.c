// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: the connection state machine. The table is drawn from the picture in rail/verbs.h, not
 * from the code.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include <rail/verbs.h>

#define NR_STATES	6

struct move {
	enum rail_state from;
	enum rail_state to;
	bool may;
};

static const struct move moves[] = {
	{ RAIL_IDLE, RAIL_IDLE, false },
	{ RAIL_IDLE, RAIL_RESOLVING, true },
	{ RAIL_IDLE, RAIL_CONNECTING, true },
	{ RAIL_IDLE, RAIL_UP, false },
	{ RAIL_IDLE, RAIL_CLOSING, true },
	{ RAIL_IDLE, RAIL_DEAD, false },

	{ RAIL_RESOLVING, RAIL_IDLE, false },
	{ RAIL_RESOLVING, RAIL_RESOLVING, false },
	{ RAIL_RESOLVING, RAIL_CONNECTING, true },
	{ RAIL_RESOLVING, RAIL_UP, false },
	{ RAIL_RESOLVING, RAIL_CLOSING, true },
	{ RAIL_RESOLVING, RAIL_DEAD, false },

	{ RAIL_CONNECTING, RAIL_IDLE, false },
	{ RAIL_CONNECTING, RAIL_RESOLVING, false },
	{ RAIL_CONNECTING, RAIL_CONNECTING, false },
	{ RAIL_CONNECTING, RAIL_UP, true },
	{ RAIL_CONNECTING, RAIL_CLOSING, true },
	{ RAIL_CONNECTING, RAIL_DEAD, false },

	{ RAIL_UP, RAIL_IDLE, false },
	{ RAIL_UP, RAIL_RESOLVING, false },
	{ RAIL_UP, RAIL_CONNECTING, false },
	{ RAIL_UP, RAIL_UP, false },
	{ RAIL_UP, RAIL_CLOSING, true },
	{ RAIL_UP, RAIL_DEAD, false },

	{ RAIL_CLOSING, RAIL_IDLE, false },
	{ RAIL_CLOSING, RAIL_RESOLVING, false },
	{ RAIL_CLOSING, RAIL_CONNECTING, false },
	{ RAIL_CLOSING, RAIL_UP, false },
	{ RAIL_CLOSING, RAIL_CLOSING, false },
	{ RAIL_CLOSING, RAIL_DEAD, true },

	{ RAIL_DEAD, RAIL_IDLE, false },
	{ RAIL_DEAD, RAIL_RESOLVING, false },
	{ RAIL_DEAD, RAIL_CONNECTING, false },
	{ RAIL_DEAD, RAIL_UP, false },
	{ RAIL_DEAD, RAIL_CLOSING, false },
	{ RAIL_DEAD, RAIL_DEAD, false },
};

static void move_desc(const struct move *move, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%d to %d: %s", move->from, move->to,
		 move->may ? "legal" : "illegal");
}

KUNIT_ARRAY_PARAM(move, moves, move_desc);

static void state_move(struct kunit *test)
{
	const struct move *move = test->param_value;

	KUNIT_EXPECT_EQ(test, rail_state_may(move->from, move->to), move->may);
}

static void state_all_covered(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, (int)RAIL_NR_STATES, NR_STATES);
	KUNIT_EXPECT_EQ(test, ARRAY_SIZE(moves), NR_STATES * NR_STATES);
}

static const int wild[] = { NR_STATES, NR_STATES + 1, 31, 32, 33, 63, 64, 255, 256, INT_MAX,
			    INT_MIN, -1, -2 };

static void state_out_of_range(struct kunit *test)
{
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(wild); i++) {
		for (j = 0; j < NR_STATES; j++) {
			KUNIT_EXPECT_FALSE_MSG(test, rail_state_may(wild[i], j), "%d to %u",
					       wild[i], j);
			KUNIT_EXPECT_FALSE_MSG(test, rail_state_may(j, wild[i]), "%u to %d", j,
					       wild[i]);
		}
		for (j = 0; j < ARRAY_SIZE(wild); j++)
			KUNIT_EXPECT_FALSE_MSG(test, rail_state_may(wild[i], wild[j]),
					       "%d to %d", wild[i], wild[j]);
	}
}

static void state_names(struct kunit *test)
{
	static const char * const names[NR_STATES] = {
		"idle", "resolving", "connecting", "up", "closing", "dead",
	};
	unsigned int i, j;

	for (i = 0; i < NR_STATES; i++) {
		KUNIT_ASSERT_NOT_NULL(test, rail_state_name(i));
		KUNIT_EXPECT_STREQ(test, rail_state_name(i), names[i]);
	}
	for (i = 0; i < ARRAY_SIZE(wild); i++) {
		KUNIT_ASSERT_NOT_NULL_MSG(test, rail_state_name(wild[i]), "%d", wild[i]);
		for (j = 0; j < NR_STATES; j++)
			KUNIT_EXPECT_STRNEQ(test, rail_state_name(wild[i]), names[j]);
	}
}

/* From every state the end is reached, and never again left: no state is a trap. */
static void state_ends(struct kunit *test)
{
	enum rail_state from, to;

	for (from = RAIL_IDLE; from < RAIL_CLOSING; from++)
		KUNIT_EXPECT_TRUE(test, rail_state_may(from, RAIL_CLOSING));
	for (from = RAIL_IDLE; from < NR_STATES; from++)
		for (to = RAIL_IDLE; to <= from; to++)
			KUNIT_EXPECT_FALSE_MSG(test, rail_state_may(from, to), "back: %d to %d",
					       from, to);
}

static struct kunit_case state_cases[] = {
	KUNIT_CASE(state_all_covered),
	KUNIT_CASE_PARAM(state_move, move_gen_params),
	KUNIT_CASE(state_out_of_range),
	KUNIT_CASE(state_names),
	KUNIT_CASE(state_ends),
	{}
};

static struct kunit_suite state_suite = {
	.name = "rail_state",
	.test_cases = state_cases,
};

kunit_test_suite(state_suite);

MODULE_DESCRIPTION("KUnit tests of RAIL's connection state machine");
MODULE_LICENSE("GPL");
