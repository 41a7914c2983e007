/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RNBD protocol version 2 on the wire: the user header inside an RTRS request, and the data of
 * the answers to SESS_INFO and OPEN. Integers are little-endian, natural alignment.
 *
 * The decoders take the bytes and their number, read each byte once, and fill in a checked
 * structure in host order. Whether the device exists and may be used so is for the caller.
 */
#ifndef RAIL_WIRE_RNBD_H
#define RAIL_WIRE_RNBD_H

#include <rail/wire/types.h>

#define RAIL_RNBD_VERSION	2
#define RAIL_RNBD_NAME_LEN	255	/* with the NUL */
#define RAIL_RNBD_SECTOR	512
/* Bytes of a device are counted in a signed 64-bit number. */
#define RAIL_RNBD_MAX_SECTORS	0x40000000000000ULL

enum rail_rnbd_type {
	RAIL_RNBD_SESS_INFO	= 0,
	RAIL_RNBD_SESS_INFO_RSP	= 1,
	RAIL_RNBD_OPEN		= 2,
	RAIL_RNBD_OPEN_RSP	= 3,
	RAIL_RNBD_IO		= 4,
	RAIL_RNBD_CLOSE		= 5,
};

enum rail_rnbd_access {
	RAIL_RNBD_ACCESS_RO		= 0,
	RAIL_RNBD_ACCESS_RW		= 1,
	RAIL_RNBD_ACCESS_MIGRATION	= 2,
};

/* The low 8 bits of rw. */
enum rail_rnbd_op {
	RAIL_RNBD_OP_READ		= 0,
	RAIL_RNBD_OP_WRITE		= 1,
	RAIL_RNBD_OP_FLUSH		= 2,
	RAIL_RNBD_OP_DISCARD		= 3,
	RAIL_RNBD_OP_SECURE_ERASE	= 4,
	RAIL_RNBD_OP_WRITE_ZEROES	= 5,
};

#define RAIL_RNBD_OP_MASK	0xff
#define RAIL_RNBD_F_SYNC	0x100
#define RAIL_RNBD_F_FUA		0x200
#define RAIL_RNBD_F_PREFLUSH	0x400
#define RAIL_RNBD_F_NOUNMAP	0x800
#define RAIL_RNBD_F_ALL		0xf00

#define RAIL_RNBD_CACHE_FUA		0x01
#define RAIL_RNBD_CACHE_WRITEBACK	0x02

struct rail_rnbd_head {
	__le16 type;
	__le16 padding;
};

static_assert(sizeof(struct rail_rnbd_head) == 4);
static_assert(offsetof(struct rail_rnbd_head, padding) == 2);

/* SESS_INFO, and its answer in the data of the read. */
struct rail_rnbd_sess_info {
	struct rail_rnbd_head head;
	__u8 ver;
	__u8 reserved[31];
};

static_assert(sizeof(struct rail_rnbd_sess_info) == 36);
static_assert(offsetof(struct rail_rnbd_sess_info, ver) == 4);
static_assert(offsetof(struct rail_rnbd_sess_info, reserved) == 5);

/*
 * What two ends that are both RAIL say to each other in bytes that others send as zeros and do not
 * look at: they tell one another, in the first SESS_INFO of a session, that they know of it. After
 * that, a SESS_INFO that asks for sizes is answered with those devices whose size is not, or once
 * was not, what OPEN said; they follow the answer itself.
 */
#define RAIL_RNBD_EXT_MAGIC	0x4c494152	/* "RAIL" */

#define RAIL_RNBD_EXT_SIZES	0x0001		/* asks for sizes, or has them */

struct rail_rnbd_ext {
	__le32 magic;
	__le16 flags;
	__le16 count;		/* of struct rail_rnbd_size */
};

/* In reserved[]. */
#define RAIL_RNBD_EXT_AT	8

static_assert(sizeof(struct rail_rnbd_ext) == 8);
static_assert(RAIL_RNBD_EXT_AT + sizeof(struct rail_rnbd_ext) <=
	      sizeof(struct rail_rnbd_sess_info));

struct rail_rnbd_size {
	__le32 device_id;
	__le32 reserved;
	__le64 nsectors;
};

static_assert(sizeof(struct rail_rnbd_size) == 16);
static_assert(offsetof(struct rail_rnbd_size, nsectors) == 8);

struct rail_rnbd_open {
	struct rail_rnbd_head head;
	__u8 access_mode;
	__u8 resv;
	__u8 dev_name[RAIL_RNBD_NAME_LEN];
	__u8 reserved[3];
};

static_assert(sizeof(struct rail_rnbd_open) == 264);
static_assert(offsetof(struct rail_rnbd_open, access_mode) == 4);
static_assert(offsetof(struct rail_rnbd_open, resv) == 5);
static_assert(offsetof(struct rail_rnbd_open, dev_name) == 6);
static_assert(offsetof(struct rail_rnbd_open, reserved) == 261);

struct rail_rnbd_open_rsp {
	struct rail_rnbd_head head;
	__le32 device_id;
	__le64 nsectors;
	__le32 max_hw_sectors;
	__le32 zeroes_sectors;
	__le32 max_discard_sectors;
	__le32 discard_granularity;
	__le32 discard_align;
	__le16 phys_block_size;
	__le16 logical_block_size;
	__le16 max_segments;
	__le16 secure_erase;
	__u8 obsolete;
	__u8 cache_policy;
	__u8 reserved[10];
};

static_assert(sizeof(struct rail_rnbd_open_rsp) == 56);
static_assert(offsetof(struct rail_rnbd_open_rsp, device_id) == 4);
static_assert(offsetof(struct rail_rnbd_open_rsp, nsectors) == 8);
static_assert(offsetof(struct rail_rnbd_open_rsp, max_hw_sectors) == 16);
static_assert(offsetof(struct rail_rnbd_open_rsp, zeroes_sectors) == 20);
static_assert(offsetof(struct rail_rnbd_open_rsp, max_discard_sectors) == 24);
static_assert(offsetof(struct rail_rnbd_open_rsp, discard_granularity) == 28);
static_assert(offsetof(struct rail_rnbd_open_rsp, discard_align) == 32);
static_assert(offsetof(struct rail_rnbd_open_rsp, phys_block_size) == 36);
static_assert(offsetof(struct rail_rnbd_open_rsp, logical_block_size) == 38);
static_assert(offsetof(struct rail_rnbd_open_rsp, max_segments) == 40);
static_assert(offsetof(struct rail_rnbd_open_rsp, secure_erase) == 42);
static_assert(offsetof(struct rail_rnbd_open_rsp, obsolete) == 44);
static_assert(offsetof(struct rail_rnbd_open_rsp, cache_policy) == 45);
static_assert(offsetof(struct rail_rnbd_open_rsp, reserved) == 46);

struct rail_rnbd_io {
	struct rail_rnbd_head head;
	__le32 device_id;
	__le64 sector;
	__le32 rw;
	__le32 bi_size;
	__le16 prio;
	__u8 padding[6];
};

static_assert(sizeof(struct rail_rnbd_io) == 32);
static_assert(offsetof(struct rail_rnbd_io, device_id) == 4);
static_assert(offsetof(struct rail_rnbd_io, sector) == 8);
static_assert(offsetof(struct rail_rnbd_io, rw) == 16);
static_assert(offsetof(struct rail_rnbd_io, bi_size) == 20);
static_assert(offsetof(struct rail_rnbd_io, prio) == 24);
static_assert(offsetof(struct rail_rnbd_io, padding) == 26);

struct rail_rnbd_close {
	struct rail_rnbd_head head;
	__le32 device_id;
};

static_assert(sizeof(struct rail_rnbd_close) == 8);
static_assert(offsetof(struct rail_rnbd_close, device_id) == 4);

/*
 * Why a message is refused. Every refusal has its own reason; rail_rnbd_reason_text() has the
 * words for the log.
 */
enum rail_rnbd_reason {
	RAIL_RNBD_OK = 0,
	RAIL_RNBD_SHORT,
	RAIL_RNBD_BAD_TYPE,
	RAIL_RNBD_BAD_WAY,
	RAIL_RNBD_BAD_VERSION,
	RAIL_RNBD_ANSWER_SPACE,
	/* OPEN */
	RAIL_RNBD_ACCESS,
	RAIL_RNBD_NAME_END,
	RAIL_RNBD_NAME_EMPTY,
	RAIL_RNBD_NAME_CHAR,
	/* OPEN_RSP */
	RAIL_RNBD_BLOCK_SIZE,
	RAIL_RNBD_CAPACITY,
	RAIL_RNBD_LIMITS,
	/* IO */
	RAIL_RNBD_OP,
	RAIL_RNBD_FLAGS,
	RAIL_RNBD_IO_WAY,
	RAIL_RNBD_IO_DATA,
	RAIL_RNBD_IO_SIZE,
	RAIL_RNBD_IO_RANGE,
	RAIL_RNBD_NR_REASONS,
};

const char *rail_rnbd_reason_text(enum rail_rnbd_reason reason);

enum rail_rnbd_reason rail_rnbd_type_decode(const void *buf, __u32 len, bool is_read,
					    enum rail_rnbd_type *type);

enum rail_rnbd_reason rail_rnbd_sess_info_decode(const void *buf, __u32 len, __u32 room,
						 __u8 *ver);
enum rail_rnbd_reason rail_rnbd_sess_info_rsp_decode(const void *buf, __u32 len, __u8 *ver);
void rail_rnbd_sess_info_encode(struct rail_rnbd_sess_info *msg, bool rsp, __u8 ver);

void rail_rnbd_ext_encode(struct rail_rnbd_sess_info *msg, __u16 flags, __u16 count);
bool rail_rnbd_ext_decode(const void *buf, __u32 len, __u16 *flags, __u16 *count);
void rail_rnbd_size_encode(struct rail_rnbd_size *msg, __u32 device_id, __u64 nsectors);
enum rail_rnbd_reason rail_rnbd_size_decode(const void *buf, __u32 len, __u16 index,
					    __u32 *device_id, __u64 *nsectors);

/**
 * struct rail_rnbd_opening - what an OPEN asks for
 * @access: enum rail_rnbd_access
 * @dev_name: NUL-terminated, not empty, free of control characters
 */
struct rail_rnbd_opening {
	__u8 access;
	char dev_name[RAIL_RNBD_NAME_LEN];
};

enum rail_rnbd_reason rail_rnbd_name_check(const char *name, size_t size);
bool rail_rnbd_name_climbs(const char *name);
enum rail_rnbd_reason rail_rnbd_open_decode(const void *buf, __u32 len, __u32 room,
					    struct rail_rnbd_opening *opening);
enum rail_rnbd_reason rail_rnbd_open_encode(struct rail_rnbd_open *msg,
					    enum rail_rnbd_access access, const char *dev_name);

/**
 * rail_rnbd_access_text() - name of an access mode, as users write it
 * @access: enum rail_rnbd_access
 */
static inline const char *rail_rnbd_access_text(__u8 access)
{
	switch (access) {
	case RAIL_RNBD_ACCESS_RO:
		return "ro";
	case RAIL_RNBD_ACCESS_RW:
		return "rw";
	case RAIL_RNBD_ACCESS_MIGRATION:
		return "migration";
	default:
		return "?";
	}
}

/**
 * struct rail_rnbd_device - what the server says of a device it opened
 * @nsectors: its size in units of 512 bytes
 * @device_id: by which I/O names it
 * @max_hw_sectors: most sectors in one I/O
 * @max_write_zeroes_sectors: the same for write zeroes; 0: cannot
 * @max_discard_sectors: the same for discard; 0: cannot
 * @discard_granularity: in bytes
 * @discard_alignment: in bytes
 * @physical_block_size: in bytes
 * @logical_block_size: in bytes
 * @max_segments: most segments in one I/O
 * @secure_discard: not 0: secure erase is there
 * @cache_policy: RAIL_RNBD_CACHE_* bits
 */
struct rail_rnbd_device {
	__u64 nsectors;
	__u32 device_id;
	__u32 max_hw_sectors;
	__u32 max_write_zeroes_sectors;
	__u32 max_discard_sectors;
	__u32 discard_granularity;
	__u32 discard_alignment;
	__u16 physical_block_size;
	__u16 logical_block_size;
	__u16 max_segments;
	__u16 secure_discard;
	__u8 cache_policy;
};

enum rail_rnbd_reason rail_rnbd_open_rsp_decode(const void *buf, __u32 len,
						struct rail_rnbd_device *dev);
void rail_rnbd_open_rsp_encode(struct rail_rnbd_open_rsp *msg, const struct rail_rnbd_device *dev);

/**
 * struct rail_rnbd_req - an I/O
 * @sector: where it begins
 * @device_id: of which device
 * @op: enum rail_rnbd_op
 * @flags: RAIL_RNBD_F_* bits
 * @size: bytes of the device that it covers; 0 for a flush
 * @prio: I/O priority
 */
struct rail_rnbd_req {
	__u64 sector;
	__u32 device_id;
	__u8 op;
	__u32 flags;
	__u32 size;
	__u16 prio;
};

enum rail_rnbd_reason rail_rnbd_io_decode(const void *buf, __u32 len, bool is_read, __u32 data_len,
					  struct rail_rnbd_req *req);
enum rail_rnbd_reason rail_rnbd_io_in_range(const struct rail_rnbd_req *req, __u64 nsectors);
void rail_rnbd_io_encode(struct rail_rnbd_io *msg, const struct rail_rnbd_req *req);

/**
 * rail_rnbd_op_is_read() - does it travel as an RTRS read?
 * @op: operation
 */
static inline bool rail_rnbd_op_is_read(enum rail_rnbd_op op)
{
	return op == RAIL_RNBD_OP_READ || op == RAIL_RNBD_OP_FLUSH;
}

/**
 * rail_rnbd_op_has_data() - does it carry data, one way or the other?
 * @op: operation
 */
static inline bool rail_rnbd_op_has_data(enum rail_rnbd_op op)
{
	return op == RAIL_RNBD_OP_READ || op == RAIL_RNBD_OP_WRITE;
}

/**
 * rail_rnbd_op_modifies() - is it one that a device opened read-only must not see?
 * @op: operation
 */
static inline bool rail_rnbd_op_modifies(enum rail_rnbd_op op)
{
	return op != RAIL_RNBD_OP_READ && op != RAIL_RNBD_OP_FLUSH;
}

enum rail_rnbd_reason rail_rnbd_close_decode(const void *buf, __u32 len, __u32 *device_id);
void rail_rnbd_close_encode(struct rail_rnbd_close *msg, __u32 device_id);

#endif /* RAIL_WIRE_RNBD_H */
