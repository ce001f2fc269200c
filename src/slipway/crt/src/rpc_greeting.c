/* SPDX-License-Identifier: Apache-2.0
 * The first frames of a session: versions, limits, and the proof of the token.
 *
 *   client                        server
 *   HELLO         ------------>
 *                 <------------   CHALLENGE      only when a token is needed
 *   AUTHENTICATE  ------------>
 *                 <------------   WELCOME or ERROR
 */
#include <string.h>

#include "rpc_auth.h"
#include "rpc_internal.h"


typedef struct hello {
  uint16_t version_min, version_max;
  uint32_t role;
  uint64_t features;
  uint32_t frame_bytes, timeout_ms;
  const char *key;
  const char *name;
} hello;

static int refuse(slw_rpc_session *session, uint32_t id) {
  (void)slw_rpc_send_failure(session, id);
  (void)slw_rpc_flush(session);
  session->ended = true;
  return -1;
}

/* Receive one whole frame of the greeting; its payload is at rx + rx_at - header->size. */
static bool receive(slw_rpc_session *session, uint16_t code, slw_rpc_header *header,
                    slw_rpc_reader *reader) {
  if (!slw_rpc_fill(session, SLW_RPC_HEADER_BYTES)) {
    return false;
  }
  slw_rpc_header_get(session->rx + session->rx_at, header);
  /* Whoever starts with anything else does not speak this protocol: it gets no answer. */
  if (header->code != code || header->size > SLW_RPC_HELLO_MAX_BYTES ||
      header->size % 8u != 0u || header->channel != 0u || header->flags != 0u ||
      header->id == 0u) {
    return false;
  }
  session->rx_at += SLW_RPC_HEADER_BYTES;
  if (!slw_rpc_fill(session, header->size)) {
    return false;
  }
  *reader = slw_rpc_reader_on(session->rx + session->rx_at, header->size);
  session->rx_at += header->size;
  return true;
}

static bool read_hello(slw_rpc_reader *reader, hello *out) {
  const uint8_t *magic = slw_rpc_get_bytes(reader, SLW_RPC_MAGIC_BYTES);
  uint16_t key_size, name_size;
  if (magic == NULL || memcmp(magic, SLW_RPC_MAGIC, SLW_RPC_MAGIC_BYTES) != 0) {
    return false;
  }
  out->version_min = slw_rpc_get_u16(reader);
  out->version_max = slw_rpc_get_u16(reader);
  out->role = slw_rpc_get_u32(reader);
  out->features = slw_rpc_get_u64(reader);
  out->frame_bytes = slw_rpc_get_u32(reader);
  out->timeout_ms = slw_rpc_get_u32(reader);
  key_size = slw_rpc_get_u16(reader);
  name_size = slw_rpc_get_u16(reader);
  (void)slw_rpc_get_u32(reader);
  out->key = slw_rpc_get_name(reader, key_size);
  out->name = slw_rpc_get_name(reader, name_size);
  return reader->ok;
}

static void number_text(uint32_t number, char out[12]) {
  char digits[12];
  unsigned count = 0;
  do {
    digits[count++] = (char)('0' + number % 10u);
    number /= 10u;
  } while (number > 0u);
  while (count > 0u) {
    *out++ = digits[--count];
  }
  *out = '\0';
}

static int check_version(slw_rpc_session *session, const hello *peer) {
  char theirs[12], ours[12];
  if (peer->version_min <= SLW_RPC_VERSION_MAX && peer->version_max >= SLW_RPC_VERSION_MIN) {
    return SLW_RPC_OK;
  }
  number_text(peer->version_max, theirs);
  number_text(SLW_RPC_VERSION_MAX, ours);
  return slw_rpc_fail(
      session, SLW_RPC_FAIL_VERSION, "RPCError", "the client (", peer->name,
      ") speaks RPC protocol ", theirs, ", this device (", session->config.description,
      ") speaks ", ours, ". Install the same release of Slipway on both sides", NULL);
}

/* Send the peer a challenge. */
static int challenge(slw_rpc_session *session) {
  const slw_rpc_hooks *hooks = session->config.hooks;
  slw_rpc_greeting *greeting = &session->greeting;
  slw_rpc_writer writer;
  if (session->config.token_size > 0u && hooks->random != NULL &&
      hooks->random(hooks->context, greeting->nonce, sizeof(greeting->nonce)) != 0) {
    (void)slw_rpc_fail(session, SLW_RPC_FAIL_IO, "RPCError",
                       "this device has no source of random numbers (getrandom, /dev/urandom), so "
                       "it cannot ask for the token", NULL);
    return refuse(session, greeting->id);
  }
  if (session->config.token_size == 0u || hooks->random == NULL) {
    (void)slw_rpc_fail(session, SLW_RPC_FAIL_AUTH, "RPCError",
                       "this device has no token, so it serves its own machine only. Start its "
                       "server with a token (SLIPWAY_RPC_TOKEN or --token-file) and give the "
                       "client the same one", NULL);
    return refuse(session, greeting->id);
  }
  writer = slw_rpc_reply(session);
  slw_rpc_put_bytes(&writer, greeting->nonce, sizeof(greeting->nonce));
  slw_rpc_reply_end(session, SLW_RPC_CHALLENGE, greeting->id, writer.at);
  return slw_rpc_flush(session) ? 0 : -1;
}

/* Check the peer's answer to the challenge. Fills `proof`, our own that we have the token too. */
static int authenticate(slw_rpc_session *session, uint8_t proof[SLW_RPC_MAC_BYTES]) {
  const slw_rpc_hooks *hooks = session->config.hooks;
  const uint8_t *nonce = session->greeting.nonce;
  uint8_t expected[SLW_RPC_MAC_BYTES];
  const uint8_t *peer_nonce;
  const uint8_t *mac;
  slw_rpc_header header;
  slw_rpc_reader reader;
  if (!receive(session, SLW_RPC_AUTHENTICATE, &header, &reader)) {
    session->ended = true;
    return -1;
  }
  peer_nonce = slw_rpc_get_bytes(&reader, SLW_RPC_NONCE_BYTES);
  mac = slw_rpc_get_bytes(&reader, SLW_RPC_MAC_BYTES);
  slw_rpc_mac(session->config.token, session->config.token_size, "slipway rpc 1 client", nonce,
              peer_nonce != NULL ? peer_nonce : nonce, expected);
  if (mac == NULL || !slw_rpc_mac_equal(mac, expected)) {
    if (hooks->delay_refusal != NULL) {
      hooks->delay_refusal(hooks->context);
    }
    (void)slw_rpc_fail(session, SLW_RPC_FAIL_AUTH, "RPCError",
                       "the token is not the one of this device. Set SLIPWAY_RPC_TOKEN to the "
                       "token that its server was started with", NULL);
    return refuse(session, session->greeting.id);
  }
  slw_rpc_mac(session->config.token, session->config.token_size, "slipway rpc 1 server",
              peer_nonce, nonce, proof);
  return SLW_RPC_OK;
}

static int check_key(slw_rpc_session *session, const char *key) {
  const slw_rpc_config *config = &session->config;
  if (!slw_rpc_is_printable(key)) {
    return slw_rpc_fail(session, SLW_RPC_FAIL_AUTH, "RPCError",
                        "the kind of device that the client asks for is no printable UTF-8", NULL);
  }
  if (config->hooks->admit != NULL) {
    int failure = config->hooks->admit(config->hooks->context, key);
    return failure == SLW_RPC_OK ? SLW_RPC_OK : slw_rpc_fail_hook(session, failure);
  }
  if (key[0] == '\0' || strcmp(key, config->key) == 0) {
    return SLW_RPC_OK;
  }
  return slw_rpc_fail(session, SLW_RPC_FAIL_AUTH, "RPCError",
                      "the client asked for a device of kind '", key, "', this one is '",
                      config->key, "'. Leave the key out, or connect to the right port", NULL);
}

static uint64_t features_of(const slw_rpc_config *config) {
  const slw_rpc_hooks *hooks = config->hooks;
  return (config->offers_output ? SLW_RPC_FEATURE_OUTPUT : 0u) |
         (hooks->make_callback != NULL ? SLW_RPC_FEATURE_CALLBACKS : 0u) |
         (hooks->file_create != NULL ? SLW_RPC_FEATURE_FILES : 0u) |
         (hooks->load_module != NULL ? SLW_RPC_FEATURE_MODULES : 0u) |
         (hooks->time != NULL ? SLW_RPC_FEATURE_TIMING : 0u);
}

/* The peer has proved what it must: let it in. */
static int welcome(slw_rpc_session *session, const uint8_t proof[SLW_RPC_MAC_BYTES]) {
  const slw_rpc_config *config = &session->config;
  const slw_rpc_greeting *peer = &session->greeting;
  size_t key_size = slw_rpc_text_size(config->key);
  size_t name_size = slw_rpc_text_size(config->description);
  slw_rpc_writer writer;
  int failure;
  if (check_key(session, peer->key) != SLW_RPC_OK) {
    return refuse(session, peer->id);
  }
  failure = config->hooks->enter != NULL ? config->hooks->enter(config->hooks->context) : SLW_RPC_OK;
  if (failure != SLW_RPC_OK) {
    (void)slw_rpc_fail_hook(session, failure);
    return refuse(session, peer->id);
  }
  session->peer_features = peer->features;
  session->peer_timeout_ms = peer->timeout_ms;
  if (config->session_timeout_ms != 0u &&
      (peer->timeout_ms == 0u || peer->timeout_ms > config->session_timeout_ms)) {
    session->peer_timeout_ms = config->session_timeout_ms;
  }
  writer = slw_rpc_reply(session);
  slw_rpc_put_bytes(&writer, SLW_RPC_MAGIC, SLW_RPC_MAGIC_BYTES);
  slw_rpc_put_u16(&writer, peer->version_max < SLW_RPC_VERSION_MAX ? peer->version_max
                                                                   : (uint16_t)SLW_RPC_VERSION_MAX);
  slw_rpc_put_u16(&writer, 0);
  slw_rpc_put_u32(&writer, SLW_RPC_ROLE_SESSION);
  slw_rpc_put_u64(&writer, features_of(config));
  slw_rpc_put_u32(&writer, config->frame_bytes);
  slw_rpc_put_u32(&writer, session->peer_timeout_ms);
  slw_rpc_put_bytes(&writer, proof, SLW_RPC_MAC_BYTES);
  slw_rpc_put_u16(&writer, (uint16_t)key_size);
  slw_rpc_put_u16(&writer, (uint16_t)name_size);
  slw_rpc_put_u32(&writer, 0);
  slw_rpc_put_bytes(&writer, config->key, key_size + 1u);
  slw_rpc_put_bytes(&writer, config->description, name_size + 1u);
  slw_rpc_put_padding(&writer);
  slw_rpc_reply_end(session, SLW_RPC_WELCOME, peer->id, writer.at);
  session->peer_frame_bytes = peer->frame_bytes;
  if (!writer.ok || !slw_rpc_flush(session)) {
    session->ended = true;
    return -1;
  }
  return 0;
}

int slw_rpc_session_greet_hello(slw_rpc_session *session) {
  static const uint8_t no_proof[SLW_RPC_MAC_BYTES] = {0};
  const slw_rpc_config *config = &session->config;
  slw_rpc_greeting *greeting = &session->greeting;
  slw_rpc_header header;
  slw_rpc_reader reader;
  hello peer;
  bool asks_proof;
  if (!receive(session, SLW_RPC_HELLO, &header, &reader) || !read_hello(&reader, &peer)) {
    session->ended = true;
    return -1;
  }
  greeting->id = header.id;
  if (check_version(session, &peer) != SLW_RPC_OK) {
    return refuse(session, header.id);
  }
  if (peer.role != SLW_RPC_ROLE_SESSION || peer.frame_bytes < SLW_RPC_HELLO_MAX_BYTES) {
    (void)slw_rpc_fail_malformed(session, "the greeting asks for what no session offers");
    return refuse(session, header.id);
  }
  greeting->version_max = peer.version_max;
  greeting->features = peer.features;
  greeting->frame_bytes = peer.frame_bytes;
  greeting->timeout_ms = peer.timeout_ms;
  memcpy(greeting->key, peer.key, slw_rpc_text_size(peer.key) + 1u);
  asks_proof = (peer.features & SLW_RPC_FEATURE_PROOF) != 0u && config->token_size > 0u &&
               config->hooks->random != NULL;
  if (config->needs_token || asks_proof) {
    return challenge(session) != 0 ? -1 : 1;
  }
  return welcome(session, no_proof);
}

int slw_rpc_session_greet_proof(slw_rpc_session *session) {
  uint8_t proof[SLW_RPC_MAC_BYTES] = {0};
  return authenticate(session, proof) != SLW_RPC_OK ? -1 : welcome(session, proof);
}

int slw_rpc_session_greet(slw_rpc_session *session) {
  int status = slw_rpc_session_greet_hello(session);
  return status == 1 ? slw_rpc_session_greet_proof(session) : status;
}
