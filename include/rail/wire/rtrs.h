/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RTRS 2.0 on the wire: connection set-up, immediate values and I/O headers. Integers are
 * little-endian, structures have natural alignment.
 *
 * A decoder takes the bytes and their number, reads each byte once, and fills in a structure in
 * host order that has been checked as far as the message and what the connection agreed on tell.
 * Whether a buffer id is free, a session known, a name taken is for the caller to know.
 */
#ifndef RAIL_WIRE_RTRS_H
#define RAIL_WIRE_RTRS_H

#include <rail/wire/types.h>

#define RAIL_RTRS_MAGIC			0x1bbd
#define RAIL_RTRS_MAJOR			2
#define RAIL_RTRS_MINOR			0
#define RAIL_RTRS_VERSION		(RAIL_RTRS_MAJOR << 8 | RAIL_RTRS_MINOR)
#define RAIL_RTRS_PORT			1234

#define RAIL_RTRS_UUID_LEN		16
#define RAIL_RTRS_NAME_LEN		255	/* with the NUL */
#define RAIL_RTRS_MAX_CONS		4096	/* of a path */
#define RAIL_RTRS_MAX_QUEUE_DEPTH	65535

/* Types of messages, the first two bytes of each but the connect ones. */
enum rail_rtrs_type {
	RAIL_RTRS_INFO_REQ	= 0,
	RAIL_RTRS_INFO_RSP	= 1,
	RAIL_RTRS_WRITE		= 2,
	RAIL_RTRS_READ		= 3,
	RAIL_RTRS_RKEY_RSP	= 4,
	/* RAIL's own, where both ends are; see struct rail_rtrs_small. */
	RAIL_RTRS_SMALL_WRITE	= 0x5201,
	RAIL_RTRS_SMALL_READ	= 0x5202,
	RAIL_RTRS_SMALL_RSPS	= 0x5203,
};

#define RAIL_RTRS_CONN_F_FIRST		0x01	/* first path of a new session */
#define RAIL_RTRS_RSP_F_NEW_RKEY	0x02	/* a new rkey follows every I/O */
#define RAIL_RTRS_READ_F_INVAL		0x01	/* the server must invalidate the key */

/*
 * What RAIL adds to RTRS. A client says in bytes that are reserved and 0 with others what it would
 * use, a server likewise what of that it grants: on this connection. Others see no difference.
 */
#define RAIL_RTRS_EXT_TAG		"RAI"
#define RAIL_RTRS_EXT_SMALL		0x01	/* struct rail_rtrs_small */

struct rail_rtrs_ext {
	__u8 tag[3];
	__u8 bits;
};

static_assert(sizeof(struct rail_rtrs_ext) == 4);

/* Private data of a connect request. */
struct rail_rtrs_conn_req {
	__u8 cma[2];		/* belongs to the connection manager */
	__le16 magic;
	__le16 version;
	__le16 cid;
	__le16 cid_num;
	__le16 recon_cnt;
	__u8 path_uuid[RAIL_RTRS_UUID_LEN];
	__u8 sess_uuid[RAIL_RTRS_UUID_LEN];
	__u8 flags;
	struct rail_rtrs_ext ext;
	__u8 reserved[7];
};

static_assert(sizeof(struct rail_rtrs_conn_req) == 56);
static_assert(offsetof(struct rail_rtrs_conn_req, magic) == 2);
static_assert(offsetof(struct rail_rtrs_conn_req, version) == 4);
static_assert(offsetof(struct rail_rtrs_conn_req, cid) == 6);
static_assert(offsetof(struct rail_rtrs_conn_req, cid_num) == 8);
static_assert(offsetof(struct rail_rtrs_conn_req, recon_cnt) == 10);
static_assert(offsetof(struct rail_rtrs_conn_req, path_uuid) == 12);
static_assert(offsetof(struct rail_rtrs_conn_req, sess_uuid) == 28);
static_assert(offsetof(struct rail_rtrs_conn_req, flags) == 44);
static_assert(offsetof(struct rail_rtrs_conn_req, ext) == 45);
static_assert(offsetof(struct rail_rtrs_conn_req, reserved) == 49);

/* Private data of an accept or a reject. */
struct rail_rtrs_conn_rsp {
	__le16 magic;
	__le16 version;
	__le16 error;		/* 0, or a negative errno */
	__le16 queue_depth;
	__le32 max_io_size;
	__le32 max_hdr_size;
	__le32 flags;
	struct rail_rtrs_ext ext;
	__u8 reserved[32];
};

static_assert(sizeof(struct rail_rtrs_conn_rsp) == 56);
static_assert(offsetof(struct rail_rtrs_conn_rsp, version) == 2);
static_assert(offsetof(struct rail_rtrs_conn_rsp, error) == 4);
static_assert(offsetof(struct rail_rtrs_conn_rsp, queue_depth) == 6);
static_assert(offsetof(struct rail_rtrs_conn_rsp, max_io_size) == 8);
static_assert(offsetof(struct rail_rtrs_conn_rsp, max_hdr_size) == 12);
static_assert(offsetof(struct rail_rtrs_conn_rsp, flags) == 16);
static_assert(offsetof(struct rail_rtrs_conn_rsp, ext) == 20);
static_assert(offsetof(struct rail_rtrs_conn_rsp, reserved) == 24);

/* Memory that the peer may reach. */
struct rail_rtrs_sg {
	__le64 addr;
	__le32 key;
	__le32 len;
};

static_assert(sizeof(struct rail_rtrs_sg) == 16);
static_assert(offsetof(struct rail_rtrs_sg, key) == 8);
static_assert(offsetof(struct rail_rtrs_sg, len) == 12);

/* Client to server on cid 0, once all connections of the path are up. */
struct rail_rtrs_info_req {
	__le16 type;
	__u8 name[RAIL_RTRS_NAME_LEN];
	__u8 reserved[15];
};

static_assert(sizeof(struct rail_rtrs_info_req) == 272);
static_assert(offsetof(struct rail_rtrs_info_req, name) == 2);
static_assert(offsetof(struct rail_rtrs_info_req, reserved) == 257);

/* The answer: where the chunks are. Then sg_cnt of struct rail_rtrs_sg. */
struct rail_rtrs_info_rsp {
	__le16 type;
	__le16 sg_cnt;
	__u8 reserved[4];
};

static_assert(sizeof(struct rail_rtrs_info_rsp) == 8);
static_assert(offsetof(struct rail_rtrs_info_rsp, sg_cnt) == 2);
static_assert(offsetof(struct rail_rtrs_info_rsp, reserved) == 4);

/* The end of a write request: after the data and the user header. */
struct rail_rtrs_write {
	__le16 type;
	__le16 usr_len;
};

static_assert(sizeof(struct rail_rtrs_write) == 4);
static_assert(offsetof(struct rail_rtrs_write, usr_len) == 2);

/* The end of a read request: after the user header. Then sg_cnt, 0 or 1, of struct rail_rtrs_sg. */
struct rail_rtrs_read {
	__le16 type;
	__le16 usr_len;
	__le16 flags;
	__le16 sg_cnt;
};

static_assert(sizeof(struct rail_rtrs_read) == 8);
static_assert(offsetof(struct rail_rtrs_read, usr_len) == 2);
static_assert(offsetof(struct rail_rtrs_read, flags) == 4);
static_assert(offsetof(struct rail_rtrs_read, sg_cnt) == 6);

/* With rkey rotation the answer to a request brings the chunk's next key. */
struct rail_rtrs_rkey_rsp {
	__le16 type;
	__le16 buf_id;
	__le32 rkey;
};

static_assert(sizeof(struct rail_rtrs_rkey_rsp) == 8);
static_assert(offsetof(struct rail_rtrs_rkey_rsp, buf_id) == 2);
static_assert(offsetof(struct rail_rtrs_rkey_rsp, rkey) == 4);

/*
 * A request as a message (RAIL_RTRS_EXT_SMALL): a Send on an I/O connection, from client to server.
 * The user header begins behind this, zeroes follow it up to RAIL_RTRS_SMALL_HDR bytes, and then a
 * write's data. Nothing of it is ever in memory that the client reaches, so the chunk's key stays
 * as it is, with rkey rotation too.
 *
 * The answer is one RDMA Write With Immediate, of type 1: with a read's data to the memory that
 * @sg says, or of no bytes: a write's, one without data, an error. Those without data may come
 * several in one message, see struct rail_rtrs_small_rsps.
 */
struct rail_rtrs_small {
	__le16 type;
	__le16 usr_len;
	__le16 buf_id;
	__u8 flags;
	__u8 reserved;
	__le32 data_len;
	__u8 reserved2[4];
	struct rail_rtrs_sg sg;		/* read: where the data goes; else zeroes */
};

static_assert(sizeof(struct rail_rtrs_small) == 32);
static_assert(offsetof(struct rail_rtrs_small, usr_len) == 2);
static_assert(offsetof(struct rail_rtrs_small, buf_id) == 4);
static_assert(offsetof(struct rail_rtrs_small, data_len) == 8);
static_assert(offsetof(struct rail_rtrs_small, sg) == 16);

/*
 * Answers to small requests that bring no data: a Send from server to client, of just its length.
 * Each is what would be the immediate value.
 */
#define RAIL_RTRS_SMALL_RSPS_MAX	15

struct rail_rtrs_small_rsps {
	__le16 type;
	__le16 count;		/* 1 to RAIL_RTRS_SMALL_RSPS_MAX */
	__le32 rsp[RAIL_RTRS_SMALL_RSPS_MAX];
};

static_assert(sizeof(struct rail_rtrs_small_rsps) == 64);
static_assert(offsetof(struct rail_rtrs_small_rsps, rsp) == 4);

/* The client has no other request under way here, and waits: answer at once. A hint. */
#define RAIL_RTRS_SMALL_F_ALONE	0x01

#define RAIL_RTRS_SMALL_HDR	64	/* with the user header */
#define RAIL_RTRS_SMALL_USR	(RAIL_RTRS_SMALL_HDR - sizeof(struct rail_rtrs_small))
#define RAIL_RTRS_SMALL_DATA	4096

/* The longest that follows the user header of a request. */
#define RAIL_RTRS_REQ_HDR_MAX	(sizeof(struct rail_rtrs_read) + sizeof(struct rail_rtrs_sg))

/*
 * Why a message is refused. Every refusal has its own reason; rail_rtrs_reason_text() has the
 * words for the log.
 */
enum rail_rtrs_reason {
	RAIL_RTRS_OK = 0,
	RAIL_RTRS_SHORT,
	RAIL_RTRS_BAD_MAGIC,
	RAIL_RTRS_BAD_VERSION,
	RAIL_RTRS_BAD_TYPE,
	/* connect */
	RAIL_RTRS_CID_NUM,
	RAIL_RTRS_CID,
	RAIL_RTRS_REFUSED,
	RAIL_RTRS_QUEUE_DEPTH,
	RAIL_RTRS_IO_SIZE,
	RAIL_RTRS_HDR_SIZE,
	RAIL_RTRS_CHUNK_SIZE,
	/* names */
	RAIL_RTRS_NAME_END,
	RAIL_RTRS_NAME_EMPTY,
	RAIL_RTRS_NAME_CHAR,
	/* INFO_RSP */
	RAIL_RTRS_SG_CNT,
	RAIL_RTRS_SG_LEN,
	RAIL_RTRS_SG_ADDR,
	RAIL_RTRS_SG_TOTAL,
	/* immediate values */
	RAIL_RTRS_IMM_TYPE,
	RAIL_RTRS_IMM_BUF,
	RAIL_RTRS_IMM_OFF,
	/* I/O requests */
	RAIL_RTRS_HDR_PAST,
	RAIL_RTRS_USR_LEN,
	RAIL_RTRS_USR_LONG,
	RAIL_RTRS_DATA_LONG,
	RAIL_RTRS_FLAGS,
	RAIL_RTRS_READ_SG,
	RAIL_RTRS_READ_LEN,
	RAIL_RTRS_READ_ADDR,
	RAIL_RTRS_WRITTEN,
	/* RKEY_RSP */
	RAIL_RTRS_RKEY_BUF,
	/* SMALL_RSPS */
	RAIL_RTRS_RSPS_COUNT,
	RAIL_RTRS_NR_REASONS,
};

const char *rail_rtrs_reason_text(enum rail_rtrs_reason reason);

/**
 * struct rail_rtrs_params - what the ends of a path agreed on
 * @queue_depth: chunks, and requests that may be outstanding
 * @max_io_size: most bytes of data in one
 * @max_hdr_size: most bytes of headers in one
 * @chunk_size: the sum of both
 * @mem_bits: bits of an I/O immediate value that hold the offset
 * @ext: RAIL_RTRS_EXT_*, of one connection
 * @new_rkey: a new rkey follows every I/O
 */
struct rail_rtrs_params {
	__u32 queue_depth;
	__u32 max_io_size;
	__u32 max_hdr_size;
	__u32 chunk_size;
	__u8 mem_bits;
	__u8 ext;
	bool new_rkey;
};

enum rail_rtrs_reason rail_rtrs_params_init(struct rail_rtrs_params *params, __u32 queue_depth,
					    __u32 max_io_size, __u32 max_hdr_size, bool new_rkey);

/**
 * struct rail_rtrs_conn - a connect request
 * @version: major << 8 | minor
 * @cid: which connection of the path this is
 * @cid_num: how many the path has
 * @recon_cnt: grows by 1 at each reconnect of the path
 * @first_conn: the path is the first of a new session
 * @ext: RAIL_RTRS_EXT_* that the client would use
 * @path_uuid: of the path
 * @sess_uuid: of the session
 */
struct rail_rtrs_conn {
	__u16 version;
	__u16 cid;
	__u16 cid_num;
	__u16 recon_cnt;
	bool first_conn;
	__u8 ext;
	__u8 path_uuid[RAIL_RTRS_UUID_LEN];
	__u8 sess_uuid[RAIL_RTRS_UUID_LEN];
};

enum rail_rtrs_reason rail_rtrs_conn_req_decode(const void *buf, __u32 len,
						struct rail_rtrs_conn *conn);
void rail_rtrs_conn_req_encode(struct rail_rtrs_conn_req *msg, const struct rail_rtrs_conn *conn);

enum rail_rtrs_reason rail_rtrs_conn_rsp_decode(const void *buf, __u32 len,
						struct rail_rtrs_params *params, int *error);
void rail_rtrs_accept_encode(struct rail_rtrs_conn_rsp *msg,
			     const struct rail_rtrs_params *params);
void rail_rtrs_reject_encode(struct rail_rtrs_conn_rsp *msg, int error);

enum rail_rtrs_reason rail_rtrs_name_check(const char *name, size_t size);
enum rail_rtrs_reason rail_rtrs_info_req_decode(const void *buf, __u32 len,
						char name[RAIL_RTRS_NAME_LEN]);
enum rail_rtrs_reason rail_rtrs_info_req_encode(struct rail_rtrs_info_req *msg, const char *name);

/**
 * struct rail_rtrs_mem - memory that the peer may reach, in host order
 * @addr: its address
 * @key: its key
 * @len: bytes
 */
struct rail_rtrs_mem {
	__u64 addr;
	__u32 key;
	__u32 len;
};

/**
 * rail_rtrs_info_rsp_size() - bytes of an INFO_RSP
 * @sg_cnt: descriptors in it
 */
static inline __u32 rail_rtrs_info_rsp_size(__u32 sg_cnt)
{
	return sizeof(struct rail_rtrs_info_rsp) + sg_cnt * sizeof(struct rail_rtrs_sg);
}

enum rail_rtrs_reason rail_rtrs_info_rsp_decode(const void *buf, __u32 len,
						const struct rail_rtrs_params *params,
						__u32 *sg_cnt);
void rail_rtrs_info_rsp_get(const void *buf, __u32 nr, struct rail_rtrs_mem *mem);
void rail_rtrs_info_rsp_encode(void *buf, __u16 sg_cnt);
void rail_rtrs_info_rsp_put(void *buf, __u32 nr, const struct rail_rtrs_mem *mem);

/* The types of immediate values. */
enum rail_rtrs_imm_type {
	RAIL_RTRS_IMM_IO_REQ		= 0,
	RAIL_RTRS_IMM_IO_RSP		= 1,
	RAIL_RTRS_IMM_IO_RSP_INVAL	= 2,	/* a Send With Invalidate came just before */
	RAIL_RTRS_IMM_HB		= 8,
	RAIL_RTRS_IMM_HB_ACK		= 9,
};

#define RAIL_RTRS_IMM_PAYLOAD_BITS	28
#define RAIL_RTRS_IMM_PAYLOAD_MASK	((1U << RAIL_RTRS_IMM_PAYLOAD_BITS) - 1)
#define RAIL_RTRS_IMM_BUF_BITS		19	/* of a response */
#define RAIL_RTRS_IMM_BUF_MASK		((1U << RAIL_RTRS_IMM_BUF_BITS) - 1)
#define RAIL_RTRS_IMM_ERR_MAX		511	/* the 9 bits above */

/**
 * struct rail_rtrs_imm - an immediate value taken apart
 * @type: enum rail_rtrs_imm_type
 * @buf_id: request, response: which chunk
 * @off: request: where in the chunk the header after the user header begins
 * @error: response: 0 or a negative errno
 */
struct rail_rtrs_imm {
	__u8 type;
	__u32 buf_id;
	__u32 off;
	int error;
};

enum rail_rtrs_reason rail_rtrs_imm_server(__u32 imm, const struct rail_rtrs_params *params,
					   struct rail_rtrs_imm *out);
enum rail_rtrs_reason rail_rtrs_imm_client(__u32 imm, const struct rail_rtrs_params *params,
					   struct rail_rtrs_imm *out);

/**
 * rail_rtrs_imm_req() - immediate value of a request
 * @params: of the path
 * @buf_id: chunk
 * @off: where its header begins
 */
static inline __u32 rail_rtrs_imm_req(const struct rail_rtrs_params *params, __u32 buf_id,
				      __u32 off)
{
	return (buf_id << params->mem_bits) | off;
}

__u32 rail_rtrs_imm_rsp(__u32 buf_id, int error, bool inval);

/**
 * rail_rtrs_imm_hb() - immediate value of a heartbeat
 * @ack: or of its acknowledgment
 */
static inline __u32 rail_rtrs_imm_hb(bool ack)
{
	__u32 type = ack ? RAIL_RTRS_IMM_HB_ACK : RAIL_RTRS_IMM_HB;

	return type << RAIL_RTRS_IMM_PAYLOAD_BITS;
}

/**
 * struct rail_rtrs_req - an I/O request
 * @type: RAIL_RTRS_READ or RAIL_RTRS_WRITE
 * @usr_at: where in the chunk the user header begins; what is before it is the data
 * @usr_len: bytes in the user header
 * @data_len: bytes of data: in the chunk (write), to be sent back (read)
 * @inval: read: the answer invalidates @mem.key
 * @alone: small: RAIL_RTRS_SMALL_F_ALONE
 * @has_mem: read: there is memory for data at the client
 * @mem: read: that memory
 */
struct rail_rtrs_req {
	__u16 type;
	__u16 usr_len;
	__u32 usr_at;
	__u32 data_len;
	bool inval;
	bool alone;
	bool has_mem;
	struct rail_rtrs_mem mem;
};

enum rail_rtrs_reason rail_rtrs_req_decode(const void *chunk,
					   const struct rail_rtrs_params *params, __u32 off,
					   __u32 written, struct rail_rtrs_req *req);
void rail_rtrs_write_encode(struct rail_rtrs_write *msg, __u16 usr_len);
__u32 rail_rtrs_read_encode(void *buf, __u16 usr_len, const struct rail_rtrs_mem *mem, bool inval);

/**
 * struct rail_rtrs_small_req - a request to be sent as a message
 * @type: RAIL_RTRS_SMALL_READ or RAIL_RTRS_SMALL_WRITE
 * @usr_len: bytes in the user header, at most RAIL_RTRS_SMALL_USR
 * @buf_id: chunk
 * @alone: RAIL_RTRS_SMALL_F_ALONE
 * @data_len: bytes of data, at most RAIL_RTRS_SMALL_DATA
 * @addr: read with data: where it goes
 * @key: key for that
 */
struct rail_rtrs_small_req {
	__u16 type;
	__u16 usr_len;
	__u16 buf_id;
	bool alone;
	__u32 data_len;
	__u64 addr;
	__u32 key;
};

void *rail_rtrs_small_encode(void *buf, const struct rail_rtrs_small_req *req);
enum rail_rtrs_reason rail_rtrs_small_decode(const void *buf, __u32 len,
					     const struct rail_rtrs_params *params, __u32 *buf_id,
					     struct rail_rtrs_req *req);

__u32 rail_rtrs_small_rsps_put(struct rail_rtrs_small_rsps *msg, __u32 count, __u32 rsp);
enum rail_rtrs_reason rail_rtrs_small_rsps_decode(const void *buf, __u32 len,
						  __u32 rsp[RAIL_RTRS_SMALL_RSPS_MAX],
						  __u32 *count);

enum rail_rtrs_reason rail_rtrs_rkey_rsp_decode(const void *buf, __u32 len, __u32 buf_id,
						__u32 *rkey);
void rail_rtrs_rkey_rsp_encode(struct rail_rtrs_rkey_rsp *msg, __u16 buf_id, __u32 rkey);

#endif /* RAIL_WIRE_RTRS_H */
