/*
 * A client of a Unix socket that passes open files along. Usage: pass_descriptors SOCKET < BYTES. Sends the bytes one
 * by one, each with 100 files; writes the answer; stays connected until it is killed.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FILES = 100 };

static int send_with_files(int to, char byte, const int files[FILES]) {
  union {
    char room[CMSG_SPACE(FILES * sizeof(int))];
    struct cmsghdr header;
  } control = {0};
  struct iovec text = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &text, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(FILES * sizeof(int));
  memcpy(CMSG_DATA(header), files, FILES * sizeof(int));
  return sendmsg(to, &message, 0) == 1;
}

int main(int count, char **arguments) {
  int files[FILES], to = socket(AF_UNIX, SOCK_STREAM, 0);
  char answer[1 << 16];
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (count != 2) return 2;
  for (int i = 0; i < FILES; i++) files[i] = open("/dev/null", O_RDONLY);
  snprintf(address.sun_path, sizeof address.sun_path, "%s", arguments[1]);
  if (connect(to, (struct sockaddr *)&address, sizeof address) != 0) return 1;
  for (int byte = getchar(); byte != EOF; byte = getchar()) {
    if (!send_with_files(to, (char)byte, files)) return 1;
  }
  ssize_t size = recv(to, answer, sizeof answer, 0);
  if (size <= 0 || write(1, answer, (size_t)size) != size) return 1;
  close(1);
  for (;;) pause();
}
