// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wire codecs as the kernel's compiler and headers make them: layout, byte order, and the
 * tables that matter most. The unit tests in user space have all of it; what can differ here is
 * padding, endianness and what the kernel's own types and helpers do.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <rail/wire/rnbd.h>
#include <rail/wire/rpcrdma.h>
#include <rail/wire/rtrs.h>

#define XID		0x0badcafe
#define KEY		0x1234

#define MAX_WORDS	48
#define QUEUE_DEPTH	16
#define MAX_IO		126976
#define MAX_HDR		4096

struct layout {
	const char *what;
	size_t is;
	size_t due;
};

#define SIZE(type, due)			{ "sizeof " #type, sizeof(struct type), due }
#define OFFSET(type, member, due)	{ #type "." #member, offsetof(struct type, member), due }

static const struct layout layouts[] = {
	SIZE(rail_rpcrdma_wire_fixed, 16),
	OFFSET(rail_rpcrdma_wire_fixed, vers, 4),
	OFFSET(rail_rpcrdma_wire_fixed, credit, 8),
	OFFSET(rail_rpcrdma_wire_fixed, proc, 12),
	SIZE(rail_rpcrdma_wire_seg, 16),
	OFFSET(rail_rpcrdma_wire_seg, length, 4),
	OFFSET(rail_rpcrdma_wire_seg, offset, 8),
	SIZE(rail_rpcrdma_wire_read, 24),
	OFFSET(rail_rpcrdma_wire_read, position, 4),
	OFFSET(rail_rpcrdma_wire_read, seg, 8),
	SIZE(rail_rpcrdma_wire_cm, 8),
	OFFSET(rail_rpcrdma_wire_cm, version, 4),
	OFFSET(rail_rpcrdma_wire_cm, flags, 5),
	OFFSET(rail_rpcrdma_wire_cm, send_size, 6),
	OFFSET(rail_rpcrdma_wire_cm, recv_size, 7),

	SIZE(rail_rtrs_ext, 4),
	OFFSET(rail_rtrs_ext, bits, 3),
	SIZE(rail_rtrs_conn_req, 56),
	OFFSET(rail_rtrs_conn_req, magic, 2),
	OFFSET(rail_rtrs_conn_req, version, 4),
	OFFSET(rail_rtrs_conn_req, cid, 6),
	OFFSET(rail_rtrs_conn_req, cid_num, 8),
	OFFSET(rail_rtrs_conn_req, recon_cnt, 10),
	OFFSET(rail_rtrs_conn_req, path_uuid, 12),
	OFFSET(rail_rtrs_conn_req, sess_uuid, 28),
	OFFSET(rail_rtrs_conn_req, flags, 44),
	OFFSET(rail_rtrs_conn_req, ext, 45),
	OFFSET(rail_rtrs_conn_req, reserved, 49),
	SIZE(rail_rtrs_conn_rsp, 56),
	OFFSET(rail_rtrs_conn_rsp, version, 2),
	OFFSET(rail_rtrs_conn_rsp, error, 4),
	OFFSET(rail_rtrs_conn_rsp, queue_depth, 6),
	OFFSET(rail_rtrs_conn_rsp, max_io_size, 8),
	OFFSET(rail_rtrs_conn_rsp, max_hdr_size, 12),
	OFFSET(rail_rtrs_conn_rsp, flags, 16),
	OFFSET(rail_rtrs_conn_rsp, ext, 20),
	OFFSET(rail_rtrs_conn_rsp, reserved, 24),
	SIZE(rail_rtrs_sg, 16),
	OFFSET(rail_rtrs_sg, key, 8),
	OFFSET(rail_rtrs_sg, len, 12),
	SIZE(rail_rtrs_info_req, 272),
	OFFSET(rail_rtrs_info_req, name, 2),
	OFFSET(rail_rtrs_info_req, reserved, 257),
	SIZE(rail_rtrs_info_rsp, 8),
	OFFSET(rail_rtrs_info_rsp, sg_cnt, 2),
	OFFSET(rail_rtrs_info_rsp, reserved, 4),
	SIZE(rail_rtrs_write, 4),
	OFFSET(rail_rtrs_write, usr_len, 2),
	SIZE(rail_rtrs_read, 8),
	OFFSET(rail_rtrs_read, usr_len, 2),
	OFFSET(rail_rtrs_read, flags, 4),
	OFFSET(rail_rtrs_read, sg_cnt, 6),
	SIZE(rail_rtrs_rkey_rsp, 8),
	OFFSET(rail_rtrs_rkey_rsp, buf_id, 2),
	OFFSET(rail_rtrs_rkey_rsp, rkey, 4),
	SIZE(rail_rtrs_small, 32),
	OFFSET(rail_rtrs_small, usr_len, 2),
	OFFSET(rail_rtrs_small, buf_id, 4),
	OFFSET(rail_rtrs_small, flags, 6),
	OFFSET(rail_rtrs_small, data_len, 8),
	OFFSET(rail_rtrs_small, sg, 16),
	SIZE(rail_rtrs_small_rsps, 64),
	OFFSET(rail_rtrs_small_rsps, count, 2),
	OFFSET(rail_rtrs_small_rsps, rsp, 4),

	SIZE(rail_rnbd_head, 4),
	OFFSET(rail_rnbd_head, padding, 2),
	SIZE(rail_rnbd_sess_info, 36),
	OFFSET(rail_rnbd_sess_info, ver, 4),
	OFFSET(rail_rnbd_sess_info, reserved, 5),
	SIZE(rail_rnbd_open, 264),
	OFFSET(rail_rnbd_open, access_mode, 4),
	OFFSET(rail_rnbd_open, resv, 5),
	OFFSET(rail_rnbd_open, dev_name, 6),
	OFFSET(rail_rnbd_open, reserved, 261),
	SIZE(rail_rnbd_open_rsp, 56),
	OFFSET(rail_rnbd_open_rsp, device_id, 4),
	OFFSET(rail_rnbd_open_rsp, nsectors, 8),
	OFFSET(rail_rnbd_open_rsp, max_hw_sectors, 16),
	OFFSET(rail_rnbd_open_rsp, zeroes_sectors, 20),
	OFFSET(rail_rnbd_open_rsp, max_discard_sectors, 24),
	OFFSET(rail_rnbd_open_rsp, discard_granularity, 28),
	OFFSET(rail_rnbd_open_rsp, discard_align, 32),
	OFFSET(rail_rnbd_open_rsp, phys_block_size, 36),
	OFFSET(rail_rnbd_open_rsp, logical_block_size, 38),
	OFFSET(rail_rnbd_open_rsp, max_segments, 40),
	OFFSET(rail_rnbd_open_rsp, secure_erase, 42),
	OFFSET(rail_rnbd_open_rsp, obsolete, 44),
	OFFSET(rail_rnbd_open_rsp, cache_policy, 45),
	OFFSET(rail_rnbd_open_rsp, reserved, 46),
	SIZE(rail_rnbd_io, 32),
	OFFSET(rail_rnbd_io, device_id, 4),
	OFFSET(rail_rnbd_io, sector, 8),
	OFFSET(rail_rnbd_io, rw, 16),
	OFFSET(rail_rnbd_io, bi_size, 20),
	OFFSET(rail_rnbd_io, prio, 24),
	OFFSET(rail_rnbd_io, padding, 26),
	SIZE(rail_rnbd_close, 8),
	OFFSET(rail_rnbd_close, device_id, 4),
};

static void wire_layout(struct kunit *test)
{
	int n;

	for (n = 0; n < ARRAY_SIZE(layouts); n++)
		KUNIT_EXPECT_EQ_MSG(test, layouts[n].is, layouts[n].due, "%s", layouts[n].what);
}

/* A copy that ends where its memory does, so that KASAN sees one byte too far. */
static u8 *exact(struct kunit *test, const void *data, size_t len)
{
	u8 *copy = kunit_kmalloc(test, len ?: 1, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, copy);
	memcpy(copy, data, len);
	return copy;
}

static u8 *from_words(struct kunit *test, const u32 *words, size_t nr)
{
	u8 *bytes = kunit_kmalloc(test, nr * 4 ?: 1, GFP_KERNEL);
	size_t n;

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	for (n = 0; n < nr; n++)
		rail_put_be32(bytes + n * 4, words[n]);
	return bytes;
}

static const struct rail_rpcrdma_rules server_rules = {
	.max_msg = 1 << 20,
	.max_read_segs = 6,
	.max_read_chunks = 3,
	.max_write_chunks = 2,
	.max_chunk_segs = 3,
	.home = RAIL_RPC_CALL,
};

enum body {
	BODY_NONE,
	BODY_CALL,
	BODY_REPLY,
};

/**
 * struct rpcrdma_row - a message, and what becomes of it
 * @name: for the log
 * @reason: why it is refused
 * @answer: what its sender is told
 * @home: the direction that the receiver has
 * @body: what is behind the header
 * @nr: words in @words
 * @words: from proc on; before it are XID, version and credit
 */
struct rpcrdma_row {
	const char *name;
	enum rail_rpcrdma_reason reason;
	enum rail_rpcrdma_verdict answer;
	u8 home;
	u8 body;
	u8 nr;
	u32 words[MAX_WORDS - 3 - 10];
};

#define ROW(name, reason, answer, home, body, ...)					\
	{										\
		name, RAIL_RPCRDMA_ ## reason, RAIL_RPCRDMA_ ## answer,			\
		RAIL_RPC_ ## home, BODY_ ## body,					\
		sizeof((u32[]){ __VA_ARGS__ }) / 4, { __VA_ARGS__ }			\
	}

#define ALL_LISTS	2	/* row with three lists */

static const struct rpcrdma_row rpcrdma_rows[] = {
	ROW("call", OK, DROP, CALL, CALL, 0, 0, 0, 0),
	ROW("reply", OK, DROP, REPLY, REPLY, 0, 0, 0, 0),
	ROW("all lists", OK, DROP, CALL, CALL, 0, 1, 40, KEY, 5, 0, 0x1000, 0, 1, 2, KEY, 1, 0,
	    0x1000, KEY, 2, 0, 0x1000, 0, 1, 1, KEY, 3, 0, 0x1000),
	ROW("long call", OK, DROP, CALL, NONE, 1, 1, 0, KEY, 64, 0, 0x1000, 1, 44, KEY, 8, 0,
	    0x1000, 0, 0, 0),
	ROW("long reply", OK, DROP, REPLY, NONE, 1, 0, 0, 1, 2, KEY, 64, 0, 0x1000, KEY, 0, 0,
	    0x1000),
	ROW("done", OK, DROP, CALL, NONE, 3),
	ROW("err_chunk", OK, DROP, REPLY, NONE, 4, 2),
	ROW("err_vers", OK, DROP, REPLY, NONE, 4, 1, 1, 1),
	ROW("proc 5", BAD_PROC, SEND_ERR_CHUNK, CALL, CALL, 5, 0, 0, 0),
	ROW("endless read list", READ_SHORT, SEND_ERR_CHUNK, CALL, NONE, 0, 1, 40, KEY, 4, 0,
	    0x1000),
	ROW("read word 2", READ_WORD, SEND_ERR_CHUNK, CALL, CALL, 0, 2, 40, KEY, 4, 0, 0x1000, 0,
	    0, 0),
	ROW("no read bytes", READ_ZERO, SEND_ERR_CHUNK, CALL, CALL, 0, 1, 40, KEY, 0, 0, 0x1000,
	    0, 0, 0),
	ROW("read sum wraps", READ_WRAP, SEND_ERR_CHUNK, CALL, CALL, 0, 1, 40, KEY, ~0U, 0,
	    0x1000, 1, 40, KEY, 1, 0, 0x1000, 0, 0, 0),
	ROW("read address wraps", READ_ADDR, SEND_ERR_CHUNK, CALL, CALL, 0, 1, 40, KEY, 2, ~0U,
	    ~0U, 0, 0, 0),
	ROW("read list in reply", READ_REPLY, DROP, REPLY, REPLY, 0, 1, 24, KEY, 4, 0, 0x1000, 0,
	    0, 0),
	ROW("position 42", POS_ALIGN, SEND_ERR_CHUNK, CALL, CALL, 0, 1, 42, KEY, 4, 0, 0x1000, 0,
	    0, 0),
	ROW("positions run back", POS_BACK, SEND_ERR_CHUNK, CALL, CALL, 0, 1, 44, KEY, 4, 0,
	    0x1000, 1, 40, KEY, 4, 0, 0x1000, 0, 0, 0),
	ROW("position past", POS_PAST, SEND_ERR_CHUNK, CALL, CALL, 0, 1, 44, KEY, 4, 0, 0x1000, 0,
	    0, 0),
	ROW("position 0 in MSG", POS_ZERO, SEND_ERR_CHUNK, CALL, CALL, 0, 1, 0, KEY, 64, 0,
	    0x1000, 0, 0, 0),
	ROW("write count wraps", WRITE_COUNT, SEND_ERR_CHUNK, CALL, CALL, 0, 0, 1, 0x10000001,
	    KEY, 4, 0, 0x1000, 0, 0),
	ROW("write segments", WRITE_SEGS, SEND_ERR_CHUNK, CALL, CALL, 0, 0, 1, 4, KEY, 4, 0,
	    0x1000, KEY, 4, 0, 0x1000, KEY, 4, 0, 0x1000, KEY, 4, 0, 0x1000, 0, 0),
	ROW("write sum wraps", WRITE_WRAP, SEND_ERR_CHUNK, CALL, CALL, 0, 0, 1, 2, KEY, ~0U, 0,
	    0x1000, KEY, 1, 0, 0x1000, 0, 0),
	ROW("reply count", REPLY_COUNT, SEND_ERR_CHUNK, CALL, NONE, 0, 0, 0, 1, 2, KEY, 4, 0,
	    0x1000),
	ROW("other xid", RPC_XID, SEND_ERR_CHUNK, CALL, NONE, 0, 0, 0, 0, 1, 0, 2, 3, 4),
	ROW("too long", RPC_LONG, SEND_ERR_CHUNK, CALL, NONE, 1, 1, 0, KEY, (1 << 20) + 1, 0,
	    0x1000, 0, 0, 0),
	ROW("long call with body", NOMSG_BODY, SEND_ERR_CHUNK, CALL, CALL, 1, 1, 0, KEY, 64, 0,
	    0x1000, 0, 0, 0),
	ROW("long call without call", NOMSG_NO_CALL, SEND_ERR_CHUNK, CALL, NONE, 1, 0, 0, 0),
	ROW("long reply without reply", NOMSG_NO_REPLY, DROP, REPLY, NONE, 1, 0, 0, 0),
	ROW("msgp", MSGP_OFF, SEND_ERR_CHUNK, CALL, CALL, 2, 64, 512, 0, 0, 0),
	ROW("long done", DONE_SIZE, DROP, CALL, NONE, 3, 0),
	ROW("long error", ERROR_SIZE, DROP, REPLY, NONE, 4, 2, 0),
};

/* The message of a row, with nothing behind it for KASAN to allow. */
static u8 *message(struct kunit *test, const struct rpcrdma_row *row, u32 *len)
{
	static const u32 call[] = { XID, 0, 2, 100003, 3, 0, 0, 0, 0, 0 };
	static const u32 reply[] = { XID, 1, 0, 0, 0, 0 };
	u32 words[MAX_WORDS] = { XID, 1, 32 };
	u32 nr = 3;

	memcpy(words + nr, row->words, row->nr * sizeof(u32));
	nr += row->nr;
	if (row->body == BODY_CALL) {
		memcpy(words + nr, call, sizeof(call));
		nr += ARRAY_SIZE(call);
	} else if (row->body == BODY_REPLY) {
		memcpy(words + nr, reply, sizeof(reply));
		nr += ARRAY_SIZE(reply);
	}
	*len = nr * sizeof(u32);
	return from_words(test, words, nr);
}

static void rpcrdma_decode(struct kunit *test)
{
	int n;

	for (n = 0; n < ARRAY_SIZE(rpcrdma_rows); n++) {
		const struct rpcrdma_row *row = &rpcrdma_rows[n];
		struct rail_rpcrdma_rules rules = server_rules;
		enum rail_rpcrdma_reason reason;
		struct rail_rpcrdma_hdr hdr;
		u32 len;
		u8 *msg = message(test, row, &len);

		rules.home = row->home;
		reason = rail_rpcrdma_decode(msg, len, &rules, &hdr);
		KUNIT_EXPECT_EQ_MSG(test, reason, row->reason, "%s: %s", row->name,
				    rail_rpcrdma_reason_text(reason));
		KUNIT_EXPECT_EQ_MSG(test, rail_rpcrdma_answer(reason, &hdr), row->answer, "%s",
				    row->name);
	}
}

static void rpcrdma_version(struct kunit *test)
{
	u8 *msg = from_words(test, (u32[]){ XID, 2, 32, RAIL_RPCRDMA_MSG }, 4);
	struct rail_rpcrdma_hdr hdr;

	KUNIT_EXPECT_EQ(test, rail_rpcrdma_decode(msg, 16, &server_rules, &hdr),
			RAIL_RPCRDMA_BAD_VERS);
	KUNIT_EXPECT_EQ(test, rail_rpcrdma_answer(RAIL_RPCRDMA_BAD_VERS, &hdr),
			RAIL_RPCRDMA_SEND_ERR_VERS);
	/* An ERROR gets no answer, whatever its version. */
	rail_put_be32(msg + 12, RAIL_RPCRDMA_ERROR);
	KUNIT_EXPECT_EQ(test, rail_rpcrdma_decode(msg, 16, &server_rules, &hdr),
			RAIL_RPCRDMA_BAD_VERS);
	KUNIT_EXPECT_EQ(test, rail_rpcrdma_answer(RAIL_RPCRDMA_BAD_VERS, &hdr),
			RAIL_RPCRDMA_DROP);
}

/* Whatever of a message with all three lists is missing at the end, it is refused. */
static void rpcrdma_truncated(struct kunit *test)
{
	struct rail_rpcrdma_hdr hdr;
	u32 len, cut;
	u8 *msg = message(test, &rpcrdma_rows[ALL_LISTS], &len);

	for (cut = 0; cut < len; cut++) {
		u8 *copy = exact(test, msg, cut);

		KUNIT_EXPECT_NE_MSG(test, rail_rpcrdma_decode(copy, cut, &server_rules, &hdr),
				    RAIL_RPCRDMA_OK, "%u bytes", cut);
	}
}

static void rpcrdma_chunks(struct kunit *test)
{
	static const u32 words[] = {
		XID, 1, 32, RAIL_RPCRDMA_NOMSG,
		1, 0, KEY, 60, 0, 0x1000, 1, 0, KEY, 4, 0, 0x1000,
		1, 44, KEY, 5, 0x01234567, 0x89abcdef, 0,
		1, 2, KEY, 100, 0, 0x1000, KEY, 200, 0, 0x1000, 1, 0, 0,
		1, 1, KEY, 4096, 0, 0x1000,
	};
	u8 *msg = from_words(test, words, ARRAY_SIZE(words));
	struct rail_rpcrdma_chunk chunk;
	struct rail_rpcrdma_iter it;
	struct rail_rpcrdma_hdr hdr;
	struct rail_rpcrdma_seg seg;

	KUNIT_ASSERT_EQ(test, rail_rpcrdma_decode(msg, sizeof(words), &server_rules, &hdr),
			RAIL_RPCRDMA_OK);
	KUNIT_EXPECT_EQ(test, hdr.call_len, 64);
	KUNIT_EXPECT_EQ(test, hdr.msg_len, 72);
	KUNIT_EXPECT_EQ(test, hdr.nr_read_chunks, 2);
	KUNIT_EXPECT_EQ(test, hdr.write_len, 300);
	KUNIT_EXPECT_EQ(test, hdr.reply_len, 4096);
	KUNIT_EXPECT_EQ(test, hdr.body_at, sizeof(words));

	rail_rpcrdma_read_iter(&it, &hdr.lists);
	KUNIT_ASSERT_TRUE(test, rail_rpcrdma_next_read(msg, &it, &chunk));
	KUNIT_EXPECT_EQ(test, chunk.nr_segs, 2);
	KUNIT_EXPECT_EQ(test, chunk.length, 64);
	KUNIT_ASSERT_TRUE(test, rail_rpcrdma_next_read(msg, &it, &chunk));
	KUNIT_EXPECT_EQ(test, chunk.position, 44);
	rail_rpcrdma_get_seg(msg, &chunk, 0, &seg);
	KUNIT_EXPECT_EQ(test, seg.handle, KEY);
	KUNIT_EXPECT_EQ(test, seg.length, 5);
	KUNIT_EXPECT_EQ(test, seg.offset, 0x0123456789abcdefULL);
	KUNIT_EXPECT_FALSE(test, rail_rpcrdma_next_read(msg, &it, &chunk));

	rail_rpcrdma_write_iter(&it, &hdr.lists);
	KUNIT_ASSERT_TRUE(test, rail_rpcrdma_next_write(msg, &it, &chunk));
	KUNIT_EXPECT_EQ(test, chunk.length, 300);
	KUNIT_EXPECT_TRUE(test, rail_rpcrdma_patch(msg, &chunk, 150));
	rail_rpcrdma_get_seg(msg, &chunk, 1, &seg);
	KUNIT_EXPECT_EQ(test, seg.length, 50);
	KUNIT_ASSERT_TRUE(test, rail_rpcrdma_next_write(msg, &it, &chunk));
	KUNIT_EXPECT_EQ(test, chunk.nr_segs, 0);
	KUNIT_EXPECT_FALSE(test, rail_rpcrdma_next_write(msg, &it, &chunk));
	KUNIT_ASSERT_TRUE(test, rail_rpcrdma_reply_chunk(msg, &hdr.lists, &chunk));
	KUNIT_EXPECT_EQ(test, chunk.length, 4096);
}

static void rpcrdma_encode(struct kunit *test)
{
	static const u32 words[] = {
		XID, 1, 32, RAIL_RPCRDMA_MSG,
		1, 40, KEY, 5, 0, 0x1000, 0,
		1, 2, KEY, 1, 0, 0x1000, KEY, 2, 0, 0x1000, 0,
		1, 1, KEY, 3, 0, 0x1000,
		XID, 0, 2, 100003, 3, 0, 0, 0, 0, 0,
	};
	struct rail_rpcrdma_seg seg = { .handle = KEY, .offset = 0x1000 };
	u8 *due = from_words(test, words, ARRAY_SIZE(words));
	struct rail_rpcrdma_enc enc;
	u32 size, len;

	/* The last round has room enough, the others have not. */
	for (size = 0; size <= sizeof(words); size++) {
		u8 *buf = kunit_kzalloc(test, size ?: 1, GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, buf);
		rail_rpcrdma_enc_init(&enc, buf, size);
		rail_rpcrdma_enc_fixed(&enc, XID, 32, RAIL_RPCRDMA_MSG);
		seg.length = 5;
		rail_rpcrdma_enc_read(&enc, 40, &seg);
		rail_rpcrdma_enc_reads_end(&enc);
		rail_rpcrdma_enc_write_begin(&enc);
		seg.length = 1;
		rail_rpcrdma_enc_seg(&enc, &seg);
		seg.length = 2;
		rail_rpcrdma_enc_seg(&enc, &seg);
		rail_rpcrdma_enc_chunk_end(&enc);
		rail_rpcrdma_enc_writes_end(&enc);
		rail_rpcrdma_enc_reply_begin(&enc);
		seg.length = 3;
		rail_rpcrdma_enc_seg(&enc, &seg);
		rail_rpcrdma_enc_chunk_end(&enc);
		rail_rpcrdma_enc_body(&enc, due + sizeof(words) - 40, 40);
		len = rail_rpcrdma_enc_finish(&enc);
		KUNIT_ASSERT_EQ(test, len, size == sizeof(words) ? size : 0);
		if (len)
			KUNIT_EXPECT_MEMEQ(test, buf, due, size);
	}
}

static void rpcrdma_private_data(struct kunit *test)
{
	static const u8 due[] = { 0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 7 };
	struct rail_rpcrdma_conn conn = { 4096, 8192, true };
	u8 data[64] = {};
	int at;

	rail_rpcrdma_cm_encode(data, &conn);
	KUNIT_EXPECT_MEMEQ(test, data, due, sizeof(due));
	for (at = 0; at <= sizeof(data) - sizeof(due); at += 4) {
		memset(data, 0xff, sizeof(data));
		memcpy(data + at, due, sizeof(due));
		memset(&conn, 0, sizeof(conn));
		KUNIT_EXPECT_TRUE(test, rail_rpcrdma_cm_decode(data, sizeof(data), &conn));
		KUNIT_EXPECT_EQ(test, conn.send_max, 4096);
		KUNIT_EXPECT_EQ(test, conn.recv_max, 8192);
		KUNIT_EXPECT_TRUE(test, conn.remote_inval);
	}
	KUNIT_EXPECT_FALSE(test, rail_rpcrdma_cm_decode(due, 7, &conn));
	KUNIT_EXPECT_EQ(test, conn.send_max, 1024);
	KUNIT_EXPECT_FALSE(test, conn.remote_inval);
}

static void rtrs_connect(struct kunit *test)
{
	static const u8 head[] = { 0, 0, 0xbd, 0x1b, 0, 2, 1, 0, 3, 0, 7, 0 };
	struct rail_rtrs_conn conn = { .cid = 1, .cid_num = 3, .recon_cnt = 7 };
	struct rail_rtrs_params params, got;
	struct rail_rtrs_conn_req req;
	struct rail_rtrs_conn_rsp rsp;
	int error;

	rail_rtrs_conn_req_encode(&req, &conn);
	KUNIT_EXPECT_MEMEQ(test, &req, head, sizeof(head));
	KUNIT_EXPECT_EQ(test, rail_rtrs_conn_req_decode(&req, sizeof(req), &conn), RAIL_RTRS_OK);
	KUNIT_EXPECT_EQ(test, rail_rtrs_conn_req_decode(&req, sizeof(req) - 1, &conn),
			RAIL_RTRS_SHORT);
	req.cid = req.cid_num;
	KUNIT_EXPECT_EQ(test, rail_rtrs_conn_req_decode(&req, sizeof(req), &conn), RAIL_RTRS_CID);

	KUNIT_ASSERT_EQ(test, rail_rtrs_params_init(&params, QUEUE_DEPTH, MAX_IO, MAX_HDR, true),
			RAIL_RTRS_OK);
	rail_rtrs_accept_encode(&rsp, &params);
	KUNIT_EXPECT_EQ(test, rail_rtrs_conn_rsp_decode(&rsp, sizeof(rsp), &got, &error),
			RAIL_RTRS_OK);
	KUNIT_EXPECT_MEMEQ(test, &got, &params, sizeof(params));
	rail_rtrs_reject_encode(&rsp, -EBUSY);
	KUNIT_EXPECT_EQ(test, rail_rtrs_conn_rsp_decode(&rsp, sizeof(rsp), &got, &error),
			RAIL_RTRS_REFUSED);
	KUNIT_EXPECT_EQ(test, error, -EBUSY);
}

static void rtrs_names(struct kunit *test)
{
	static const struct {
		const char *name;
		enum rail_rtrs_reason reason;
	} rows[] = {
		{ "cap", RAIL_RTRS_OK },
		{ "", RAIL_RTRS_NAME_EMPTY },
		{ "a/b", RAIL_RTRS_NAME_CHAR },
		{ "a.b", RAIL_RTRS_NAME_CHAR },
		{ "a\nb", RAIL_RTRS_NAME_CHAR },
	};
	struct rail_rtrs_info_req msg;
	char name[RAIL_RTRS_NAME_LEN];
	int n;

	for (n = 0; n < ARRAY_SIZE(rows); n++) {
		memset(&msg, 0, sizeof(msg));
		strscpy(msg.name, rows[n].name, sizeof(msg.name));
		KUNIT_EXPECT_EQ_MSG(test, rail_rtrs_info_req_decode(&msg, sizeof(msg), name),
				    rows[n].reason, "'%s'", rows[n].name);
	}
	memset(msg.name, 'a', sizeof(msg.name));
	KUNIT_EXPECT_EQ(test, rail_rtrs_info_req_decode(&msg, sizeof(msg), name),
			RAIL_RTRS_NAME_END);
}

static void rtrs_imm(struct kunit *test)
{
	struct rail_rtrs_params params;
	struct rail_rtrs_imm imm;

	/* 12 is no power of two: ids 12 to 15 have bits, but no buffer. */
	KUNIT_ASSERT_EQ(test, rail_rtrs_params_init(&params, 12, MAX_IO, MAX_HDR, false),
			RAIL_RTRS_OK);
	KUNIT_EXPECT_EQ(test, rail_rtrs_imm_req(&params, 1, 0x1020), 0x1001020);
	KUNIT_EXPECT_EQ(test, rail_rtrs_imm_server(0x1001020, &params, &imm), RAIL_RTRS_OK);
	KUNIT_EXPECT_EQ(test, imm.buf_id, 1);
	KUNIT_EXPECT_EQ(test, imm.off, 0x1020);
	KUNIT_EXPECT_EQ(test, rail_rtrs_imm_server(12 << 24, &params, &imm), RAIL_RTRS_IMM_BUF);
	KUNIT_EXPECT_EQ(test, rail_rtrs_imm_server(0x00ffffff, &params, &imm), RAIL_RTRS_IMM_OFF);
	KUNIT_EXPECT_EQ(test, rail_rtrs_imm_server(0x10000000, &params, &imm),
			RAIL_RTRS_IMM_TYPE);
	KUNIT_EXPECT_EQ(test, rail_rtrs_imm_rsp(1, 0, true), 0x20000001);
	KUNIT_EXPECT_EQ(test, rail_rtrs_imm_client(rail_rtrs_imm_rsp(11, -EIO, false), &params,
						   &imm), RAIL_RTRS_OK);
	KUNIT_EXPECT_EQ(test, imm.buf_id, 11);
	KUNIT_EXPECT_EQ(test, imm.error, -EIO);
	KUNIT_EXPECT_EQ(test, rail_rtrs_imm_hb(false), 0x80000000);
	KUNIT_EXPECT_EQ(test, rail_rtrs_imm_hb(true), 0x90000000);
}

static void rtrs_request(struct kunit *test)
{
	const u32 max_io = 512, max_hdr = 64;
	struct rail_rtrs_mem mem = { 0x0123456789abcdefULL, 0x44, 512 };
	struct rail_rtrs_params params;
	struct rail_rtrs_req req;
	u8 *chunk;
	u32 off;

	KUNIT_ASSERT_EQ(test, rail_rtrs_params_init(&params, QUEUE_DEPTH, max_io, max_hdr, false),
			RAIL_RTRS_OK);
	chunk = kunit_kzalloc(test, params.chunk_size, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, chunk);

	/* As far back as it goes: the descriptor ends with the chunk. */
	off = params.chunk_size - RAIL_RTRS_REQ_HDR_MAX;
	KUNIT_EXPECT_EQ(test, rail_rtrs_read_encode(chunk + off, 40, &mem, true),
			RAIL_RTRS_REQ_HDR_MAX);
	KUNIT_EXPECT_EQ(test, rail_rtrs_req_decode(chunk, &params, off, 64, &req), RAIL_RTRS_OK);
	KUNIT_EXPECT_EQ(test, req.data_len, 512);
	KUNIT_EXPECT_EQ(test, req.usr_len, 40);
	KUNIT_EXPECT_TRUE(test, req.inval);
	KUNIT_EXPECT_EQ(test, req.mem.addr, mem.addr);
	KUNIT_EXPECT_EQ(test, req.mem.key, mem.key);
	KUNIT_EXPECT_EQ(test, rail_rtrs_req_decode(chunk, &params, off, 63, &req),
			RAIL_RTRS_WRITTEN);
	KUNIT_EXPECT_EQ(test, rail_rtrs_req_decode(chunk, &params, off - 1, 0, &req),
			RAIL_RTRS_BAD_TYPE);

	/* One byte later nothing of it is there. */
	for (off++; off < params.chunk_size + 8; off++) {
		memset(chunk, 0, params.chunk_size);
		if (off < params.chunk_size)
			chunk[off] = RAIL_RTRS_READ;
		if (off + 6 < params.chunk_size)
			chunk[off + 6] = 1;
		KUNIT_EXPECT_NE(test, rail_rtrs_req_decode(chunk, &params, off, 0, &req),
				RAIL_RTRS_OK);
	}
}

static void rnbd_io(struct kunit *test)
{
	static const struct {
		u32 rw, size;
		bool is_read;
		u32 data_len;
		enum rail_rnbd_reason reason;
	} rows[] = {
		{ 0x100, 4096, true, 4096, RAIL_RNBD_OK },
		{ 0x601, 4096, false, 4096, RAIL_RNBD_OK },
		{ 2, 0, true, 0, RAIL_RNBD_OK },
		{ 3, 4096, false, 0, RAIL_RNBD_OK },
		{ 0x805, 4096, false, 0, RAIL_RNBD_OK },
		{ 6, 4096, false, 4096, RAIL_RNBD_OP },
		{ 0x1001, 4096, false, 4096, RAIL_RNBD_FLAGS },
		{ 1, 4096, true, 4096, RAIL_RNBD_IO_WAY },
		{ 1, 4096, false, 512, RAIL_RNBD_IO_DATA },
		{ 1, 511, false, 511, RAIL_RNBD_IO_SIZE },
		{ 2, 512, true, 0, RAIL_RNBD_IO_SIZE },
	};
	static const u8 due[] = {
		4, 0, 0, 0, 0x78, 0x56, 0x34, 0x12, 0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01,
		1, 2, 0, 0, 0, 0x10, 0, 0, 4, 0x40, 0, 0, 0, 0, 0, 0,
	};
	struct rail_rnbd_req req = {
		.sector = 0x0123456789abcdefULL, .device_id = 0x12345678, .op = RAIL_RNBD_OP_WRITE,
		.flags = RAIL_RNBD_F_FUA, .size = 4096, .prio = 0x4004,
	};
	struct rail_rnbd_io msg;
	int n;

	rail_rnbd_io_encode(&msg, &req);
	KUNIT_EXPECT_MEMEQ(test, &msg, due, sizeof(due));
	for (n = 0; n < ARRAY_SIZE(rows); n++) {
		enum rail_rnbd_reason reason;

		msg.rw = cpu_to_le32(rows[n].rw);
		msg.bi_size = cpu_to_le32(rows[n].size);
		reason = rail_rnbd_io_decode(&msg, sizeof(msg), rows[n].is_read, rows[n].data_len,
					     &req);
		KUNIT_EXPECT_EQ_MSG(test, reason, rows[n].reason, "row %d: %s", n,
				    rail_rnbd_reason_text(reason));
	}
	KUNIT_EXPECT_EQ(test, rail_rnbd_io_decode(&msg, sizeof(msg) - 1, true, 0, &req),
			RAIL_RNBD_SHORT);
}

static void rnbd_open(struct kunit *test)
{
	struct rail_rnbd_opening opening;
	struct rail_rnbd_open msg;

	KUNIT_ASSERT_EQ(test, rail_rnbd_open_encode(&msg, RAIL_RNBD_ACCESS_RW, "/dev/nullb0"),
			RAIL_RNBD_OK);
	KUNIT_EXPECT_EQ(test, rail_rnbd_open_decode(&msg, sizeof(msg), 56, &opening),
			RAIL_RNBD_OK);
	KUNIT_EXPECT_STREQ(test, opening.dev_name, "/dev/nullb0");
	KUNIT_EXPECT_EQ(test, rail_rnbd_open_decode(&msg, sizeof(msg), 55, &opening),
			RAIL_RNBD_ANSWER_SPACE);
	msg.access_mode = 3;
	KUNIT_EXPECT_EQ(test, rail_rnbd_open_decode(&msg, sizeof(msg), 56, &opening),
			RAIL_RNBD_ACCESS);
	msg.access_mode = 0;
	memset(msg.dev_name, 'a', sizeof(msg.dev_name));
	KUNIT_EXPECT_EQ(test, rail_rnbd_open_decode(&msg, sizeof(msg), 56, &opening),
			RAIL_RNBD_NAME_END);
	KUNIT_EXPECT_TRUE(test, rail_rnbd_name_climbs("a/../b"));
	KUNIT_EXPECT_FALSE(test, rail_rnbd_name_climbs("a/..b"));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(wire_layout),
	KUNIT_CASE(rpcrdma_decode),
	KUNIT_CASE(rpcrdma_version),
	KUNIT_CASE(rpcrdma_truncated),
	KUNIT_CASE(rpcrdma_chunks),
	KUNIT_CASE(rpcrdma_encode),
	KUNIT_CASE(rpcrdma_private_data),
	KUNIT_CASE(rtrs_connect),
	KUNIT_CASE(rtrs_names),
	KUNIT_CASE(rtrs_imm),
	KUNIT_CASE(rtrs_request),
	KUNIT_CASE(rnbd_io),
	KUNIT_CASE(rnbd_open),
	{ }
};

static struct kunit_suite suite = {
	.name = "rail_wire",
	.test_cases = cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("RAIL: KUnit tests of the wire structures and codecs");
MODULE_LICENSE("GPL");
