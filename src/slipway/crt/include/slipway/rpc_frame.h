/* SPDX-License-Identifier: Apache-2.0
 * Frames and values of the RPC protocol: what docs/rpc-protocol.md says, as constants and codecs.
 *
 * Freestanding. Nothing here allocates; every read is checked against the bytes that are there.
 * All integers are little-endian; sizes are bytes unless the name says otherwise.
 */
#ifndef SLIPWAY_RPC_FRAME_H_
#define SLIPWAY_RPC_FRAME_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the RPC codec copies little-endian integers as they are; this CPU is big-endian"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SLW_RPC_VERSION_MIN 1u
#define SLW_RPC_VERSION_MAX 1u
#define SLW_RPC_MAGIC "SLIPWAY\n"
#define SLW_RPC_MAGIC_BYTES 8u
#define SLW_RPC_HEADER_BYTES 16u
#define SLW_RPC_VALUE_BYTES 16u
#define SLW_RPC_TENSOR_BYTES 32u   /* a tensor descriptor before its shape */
#define SLW_RPC_HELLO_MAX_BYTES 1024u
#define SLW_RPC_NONCE_BYTES 32u
#define SLW_RPC_NAME_MAX_BYTES 200u /* of a file, function or device key */
#define SLW_RPC_KEY_MAX_BYTES 160u /* of a device's own key: with ':' and a lease it is a name */
#define SLW_RPC_MAX_NDIM 16u
#define SLW_RPC_LEASE_BYTES 32u /* of the text that names one hand-out of a device */

/* Features, negotiated in HELLO and WELCOME. */
#define SLW_RPC_FEATURE_FILES 1u
#define SLW_RPC_FEATURE_MODULES 2u
#define SLW_RPC_FEATURE_TIMING 4u
#define SLW_RPC_FEATURE_OUTPUT 8u    /* in a HELLO: what programs print shall be sent */
#define SLW_RPC_FEATURE_CALLBACKS 16u /* and lists as arguments */
#define SLW_RPC_FEATURE_PROOF 32u /* in a HELLO: the peer has a token, and wants it proved */

enum slw_rpc_role {
  SLW_RPC_ROLE_SESSION = 0,
  SLW_RPC_ROLE_DEVICE = 1, /* registers with a tracker */
  SLW_RPC_ROLE_CLIENT = 2, /* asks a tracker for devices */
  SLW_RPC_ROLE_CARRIER = 3, /* a device's connection that a proxy asked for */
  SLW_RPC_ROLE_ADMIN = 4
};

enum slw_rpc_code {
  SLW_RPC_HELLO = 1,
  SLW_RPC_CHALLENGE = 2,
  SLW_RPC_AUTHENTICATE = 3,
  SLW_RPC_WELCOME = 4,
  SLW_RPC_GOODBYE = 5,
  SLW_RPC_PING = 16,
  SLW_RPC_CALL = 17,
  SLW_RPC_GET_FUNCTION = 18,
  SLW_RPC_LOAD_MODULE = 19,
  SLW_RPC_FREE = 20,
  SLW_RPC_TENSOR_ALLOC = 21,
  SLW_RPC_TENSOR_WRITE = 22,
  SLW_RPC_TENSOR_READ = 23,
  SLW_RPC_TENSOR_COPY = 24,
  SLW_RPC_FILE_WRITE = 25,
  SLW_RPC_FILE_READ = 26,
  SLW_RPC_FILE_REMOVE = 27,
  SLW_RPC_FILE_LIST = 28,
  SLW_RPC_DEVICE_QUERY = 29,
  SLW_RPC_TIME = 30,
  SLW_RPC_OUTPUT = 32,
  SLW_RPC_REGISTER = 64,
  SLW_RPC_ASSIGN = 65,
  SLW_RPC_IDLE = 66,
  SLW_RPC_HEARTBEAT = 67,
  SLW_RPC_REVOKE = 72,
  SLW_RPC_OPEN = 96,
  SLW_RPC_RETURN = 128,
  SLW_RPC_ERROR = 129
};

enum slw_rpc_flag {
  SLW_RPC_FLAG_MORE = 1,    /* another frame with this id follows; no reply to this one */
  SLW_RPC_FLAG_NO_REPLY = 2 /* the sender wants no reply, not even an error */
};
#define SLW_RPC_FLAGS 3u /* all that there are */

enum slw_rpc_tag {
  SLW_RPC_NONE = 0,
  SLW_RPC_INT = 1,
  SLW_RPC_BOOL = 2,
  SLW_RPC_FLOAT = 3,
  SLW_RPC_DTYPE = 5,
  SLW_RPC_DEVICE = 6,
  SLW_RPC_STR = 8,
  SLW_RPC_BYTES = 9,
  SLW_RPC_FUNCTION = 68,
  SLW_RPC_SHAPE = 69,
  SLW_RPC_TENSOR = 70,
  SLW_RPC_LIST = 71,
  SLW_RPC_MODULE = 73,
  SLW_RPC_TENSOR_DESC = 128,
  SLW_RPC_CALLBACK = 129,
  SLW_RPC_TENSOR_DATA = 130
};

/* What an ERROR frame reports; the message says the rest. */
enum slw_rpc_failure {
  SLW_RPC_OK = 0,
  SLW_RPC_FAIL_PROTOCOL = 1,    /* malformed frame: the session ends */
  SLW_RPC_FAIL_VERSION = 2,     /* no common protocol version: the session ends */
  SLW_RPC_FAIL_AUTH = 3,        /* token missing or wrong: the session ends */
  SLW_RPC_FAIL_BUSY = 4,        /* too many sessions: the session ends */
  SLW_RPC_FAIL_UNSUPPORTED = 5, /* this device does not know or offer that verb */
  SLW_RPC_FAIL_ARGUMENT = 6,
  SLW_RPC_FAIL_HANDLE = 7,
  SLW_RPC_FAIL_NOT_FOUND = 8,
  SLW_RPC_FAIL_LIMIT = 9,
  SLW_RPC_FAIL_MEMORY = 10,
  SLW_RPC_FAIL_IO = 11,
  SLW_RPC_FAIL_REMOTE = 12,   /* the called function raised */
  SLW_RPC_FAIL_TIMEOUT = 13,  /* a deadline passed on the device: the session ends */
  SLW_RPC_FAIL_CRASHED = 14,  /* the session's process died: the session ends */
  SLW_RPC_FAIL_CANCELLED = 15
};

typedef struct slw_rpc_header {
  uint32_t size; /* payload bytes, a multiple of 8 */
  uint16_t code;
  uint16_t flags;
  uint32_t id;
  uint32_t channel; /* 0; a proxy numbers the sessions it carries here */
} slw_rpc_header;

/* Reads a payload; after one failed read `ok` stays false and every result is zero. */
typedef struct slw_rpc_reader {
  const uint8_t *base;
  size_t size;
  size_t at;
  bool ok;
} slw_rpc_reader;

/* Writes a payload; after one write that did not fit `ok` stays false. */
typedef struct slw_rpc_writer {
  uint8_t *base;
  size_t capacity;
  size_t at;
  bool ok;
} slw_rpc_writer;

/* One encoded argument or result, 16 bytes; `payload` is a number, a handle or an offset. */
typedef struct slw_rpc_value {
  int32_t tag;
  uint32_t size;
  uint64_t payload;
} slw_rpc_value;

void slw_rpc_header_put(uint8_t out[SLW_RPC_HEADER_BYTES], const slw_rpc_header *header);
void slw_rpc_header_get(const uint8_t in[SLW_RPC_HEADER_BYTES], slw_rpc_header *header);

slw_rpc_reader slw_rpc_reader_on(const void *payload, size_t size);
uint8_t slw_rpc_get_u8(slw_rpc_reader *reader);
uint16_t slw_rpc_get_u16(slw_rpc_reader *reader);
uint32_t slw_rpc_get_u32(slw_rpc_reader *reader);
uint64_t slw_rpc_get_u64(slw_rpc_reader *reader);
/* `size` bytes in place, or NULL when fewer are left. */
const uint8_t *slw_rpc_get_bytes(slw_rpc_reader *reader, size_t size);
/* A name of at most SLW_RPC_NAME_MAX_BYTES, NUL-terminated in place; NULL when it is not. */
const char *slw_rpc_get_name(slw_rpc_reader *reader, size_t size);
/* `size` bytes at `offset` from the start of the payload, or NULL when they are not all there. */
const uint8_t *slw_rpc_at(const slw_rpc_reader *reader, uint64_t offset, uint64_t size);

slw_rpc_writer slw_rpc_writer_on(void *payload, size_t capacity);
void slw_rpc_put_u16(slw_rpc_writer *writer, uint16_t value);
void slw_rpc_put_u32(slw_rpc_writer *writer, uint32_t value);
void slw_rpc_put_u64(slw_rpc_writer *writer, uint64_t value);
void slw_rpc_put_bytes(slw_rpc_writer *writer, const void *bytes, size_t size);
/* Zero bytes up to the next multiple of 8. */
void slw_rpc_put_padding(slw_rpc_writer *writer);
/* A value whose bytes (a string, with its NUL) go behind those written so far. */
void slw_rpc_put_value(slw_rpc_writer *writer, int32_t tag, uint32_t size, uint64_t payload);

/* Rounds up to a multiple of 8. */
size_t slw_rpc_padded(size_t size);
size_t slw_rpc_text_size(const char *text);

/* Whether `text` is UTF-8 that a terminal shows as it is: without control characters, and without
 * those that turn or hide what stands around them. */
bool slw_rpc_is_printable(const char *text);

/* Whether `name` may be a file of a session: one path component, printable, not "." or "..". */
bool slw_rpc_is_file_name(const char *name);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_RPC_FRAME_H_ */
