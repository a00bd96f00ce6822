/*
 * A client of a Unix socket that passes open files along. Usage: pass_descriptors SOCKET [SECONDS [BEFORE]] < BYTES.
 * Sends the bytes one by one, each with 100 files; writes the answer; stays connected until it is killed. With SECONDS,
 * passes with the first byte, instead of the files, the last reference to a TCP connection whose end takes that long;
 * writes "passed" or "refused". With BEFORE, sends so many zeros first.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FILES = 100 };

static int send_with_files(int to, char byte, const int files[], size_t count) {
  union {
    char room[CMSG_SPACE(FILES * sizeof(int))];
    struct cmsghdr header;
  } control = {0};
  struct iovec text = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &text, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(count * sizeof(int))};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(count * sizeof(int));
  memcpy(CMSG_DATA(header), files, count * sizeof(int));
  return sendmsg(to, &message, 0) == 1;
}

/* The other end reads nothing, so what is written stays unsent. */
static int lingering(int seconds) {
  static const char text[1 << 16];
  struct linger linger = {.l_onoff = 1, .l_linger = seconds};
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM, 0), end = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, (struct sockaddr *)&address, &size) != 0 ||
      connect(end, (struct sockaddr *)&address, size) != 0 || accept(listener, NULL, NULL) < 0 ||
      setsockopt(end, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) != 0) {
    exit(1);
  }
  while (send(end, text, sizeof text, MSG_DONTWAIT) > 0) continue;
  return end;
}

static int pass_lingering(int to, int seconds) {
  int end = lingering(seconds), first = getchar();
  int passed = send_with_files(to, (char)first, &end, 1);
  if (!passed && errno != EPERM) return 1;
  if (passed) close(end);
  for (int byte = passed ? getchar() : EOF; byte != EOF; byte = getchar()) {
    char text = (char)byte;
    if (send(to, &text, 1, 0) != 1) return 1;
  }
  puts(passed ? "passed" : "refused");
  fflush(stdout);
  close(1);
  for (;;) pause();
}

int main(int count, char **arguments) {
  int files[FILES], to = socket(AF_UNIX, SOCK_STREAM, 0);
  char answer[1 << 16];
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (count < 2 || count > 4) return 2;
  for (int i = 0; i < FILES; i++) files[i] = open("/dev/null", O_RDONLY);
  snprintf(address.sun_path, sizeof address.sun_path, "%s", arguments[1]);
  if (connect(to, (struct sockaddr *)&address, sizeof address) != 0) return 1;
  if (count == 4) {
    static const char zeros[1 << 16];
    ssize_t before = atoi(arguments[3]);
    if (before > (ssize_t)sizeof zeros || send(to, zeros, (size_t)before, 0) != before) return 1;
  }
  if (count > 2) return pass_lingering(to, atoi(arguments[2]));
  for (int byte = getchar(); byte != EOF; byte = getchar()) {
    if (!send_with_files(to, (char)byte, files, FILES)) return 1;
  }
  ssize_t size = recv(to, answer, sizeof answer, 0);
  if (size <= 0 || write(1, answer, (size_t)size) != size) return 1;
  close(1);
  for (;;) pause();
}
