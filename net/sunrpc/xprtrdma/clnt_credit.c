// SPDX-License-Identifier: GPL-2.0-only
/* Credits: how many calls may be outstanding (RFC 8166 section 3.3.1). */
#include <linux/minmax.h>

#include "clnt_pure.h"

/**
 * clnt_credit_begin - a new connection: one call until the first grant
 * @credit: the account
 * @asked: how many each call asks for, at least 1
 */
void clnt_credit_begin(struct clnt_credit *credit, u32 asked)
{
	credit->asked = asked;
	credit->limit = 1;
	credit->lost = 0;
}

/**
 * clnt_credit_grant - a reply grants a limit
 * @credit: the account
 * @grant: as it stands in the reply: anything. 0 counts as 1, too much as what was asked.
 *
 * Return: whether the limit is another one now.
 */
bool clnt_credit_grant(struct clnt_credit *credit, u32 grant)
{
	u32 limit = clamp(grant, 1U, credit->asked);

	if (limit == credit->limit)
		return false;
	credit->limit = limit;
	return true;
}

/**
 * clnt_credit_release - sunrpc is done with a call that holds a credit
 * @credit: the account
 * @sent: it was sent and is not answered
 *
 * The server has such a call all the same, and a receive stays posted for its answer: it stays
 * outstanding, as a lost one.
 *
 * Return: whether the credit is given back now.
 */
bool clnt_credit_release(struct clnt_credit *credit, bool sent)
{
	credit->lost += sent;
	return !sent;
}

/**
 * clnt_credit_late - an answer came that nobody waits for
 * @credit: the account
 * @held: the call it answers still holds its credit: clnt_credit_release() will give it back, with
 *	  the call no longer a sent one
 *
 * Return: whether it ends the outstanding of a lost call, whose credit is given back now.
 */
bool clnt_credit_late(struct clnt_credit *credit, bool held)
{
	if (held || !credit->lost)
		return false;
	credit->lost--;
	return true;
}

/**
 * clnt_credit_end - the connection is gone, and with it all that was outstanding
 * @credit: the account
 *
 * Return: how many lost calls end by that.
 */
u32 clnt_credit_end(struct clnt_credit *credit)
{
	u32 lost = credit->lost;

	credit->lost = 0;
	credit->limit = 1;
	return lost;
}

/**
 * clnt_credit_stalled - lost calls have taken every credit
 * @credit: the account
 *
 * A server that drops calls without a word would stop the mount for ever: time for another
 * connection.
 *
 * Return: whether it is so.
 */
bool clnt_credit_stalled(const struct clnt_credit *credit)
{
	return credit->lost && credit->lost >= credit->limit;
}
