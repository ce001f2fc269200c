/* SPDX-License-Identifier: Apache-2.0
 * Where a connection comes from: for the rule about tokens, for the log, and for what one address
 * may take of a server.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "rpc_server_internal.h"

bool slw_rpc_is_local(const struct sockaddr_storage *address) {
  if (address->ss_family == AF_INET) {
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
    return (ntohl(v4->sin_addr.s_addr) >> 24) == 127u;
  }
  if (address->ss_family == AF_INET6) {
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == 127u);
  }
  return address->ss_family == AF_UNIX || address->ss_family == AF_UNSPEC;
}

void slw_rpc_peer_text(const struct sockaddr_storage *address, char *text, size_t size) {
  char host[INET6_ADDRSTRLEN] = "";
  if (address->ss_family == AF_INET) {
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
    (void)inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
    (void)snprintf(text, size, "%s:%u", host, (unsigned)ntohs(v4->sin_port));
  } else if (address->ss_family == AF_INET6) {
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
    (void)inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
    (void)snprintf(text, size, "[%s]:%u", host, (unsigned)ntohs(v6->sin6_port));
  } else {
    (void)snprintf(text, size, "a local socket");
  }
}

void slw_rpc_origin_text(const struct sockaddr_storage *address, char *text, size_t size) {
  if (address->ss_family == AF_INET6) {
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
    const uint8_t *at = v6->sin6_addr.s6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
      (void)snprintf(text, size, "%u.%u.%u.%u", at[12], at[13], at[14], at[15]);
    } else { /* one subscriber has a whole /64 */
      (void)snprintf(text, size, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", at[0], at[1], at[2], at[3],
                     at[4], at[5], at[6], at[7]);
    }
  } else if (address->ss_family == AF_INET) {
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
    if (inet_ntop(AF_INET, &v4->sin_addr, text, (socklen_t)size) == NULL) {
      text[0] = '\0';
    }
  } else {
    (void)snprintf(text, size, "local");
  }
}
