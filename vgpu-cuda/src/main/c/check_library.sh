#!/bin/sh
# Refuses a library that needs a newer glibc than 2.17, or another library than glibc's own; and a hook that uses a
# cancellation point of glibc: system/calls.c.
# Usage: check_library.sh LIBRARY
set -eu
library=$1
name=$(basename "$library")
newer=$(${READELF:-readelf} --version-info "$library" | sed -n 's/.*Name: \(GLIBC_[0-9.]*\).*/\1/p' | sort -uV | awk -F'[_.]' '$2 > 2 || $3 > 17')
if [ -n "$newer" ]; then
  echo "$name would need a newer glibc than 2.17:" $newer >&2
  ${READELF:-readelf} --dyn-syms --wide "$library" | grep -E "$(echo $newer | tr ' ' '|')" >&2
  exit 1
fi
others=$(${READELF:-readelf} --dynamic "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v -E '^(libc\.so\.6|libdl\.so\.2|libpthread\.so\.0|ld-linux-x86-64\.so\.2|ld-linux-aarch64\.so\.1)$' || true)
if [ -n "$others" ]; then
  echo "$name would need other libraries:" $others >&2
  exit 1
fi
[ "$name" = libvgpu_cuda.so ] || exit 0
points='accept accept4 aio_suspend clock_nanosleep close connect creat epoll_pwait epoll_wait fcntl fdatasync fsync getmsg
  getrandom lockf mq_receive mq_send msgrcv msgsnd msync nanosleep open openat pause poll ppoll pread preadv
  pselect pthread_cond_timedwait pthread_cond_wait pthread_join pthread_testcancel putmsg pwrite pwritev
  read readv recv recvfrom recvmmsg recvmsg select sem_timedwait sem_wait send sendmmsg sendmsg sendto sigpause sigsuspend
  sigtimedwait sigwait sigwaitinfo sleep system tcdrain usleep wait wait3 wait4 waitid waitpid write writev fopen fclose
  fflush fprintf fputs fread fwrite getline dprintf syslog'
symbols=$(${NM:-nm} -D --undefined-only "$library")
used=$(echo "$symbols" | sed 's/.* //; s/@.*//; s/64$//' | grep -Fx "$(echo $points | tr ' ' '\n')" || true)
if [ -n "$used" ]; then
  echo "$name would use cancellation points:" $used >&2
  exit 1
fi
