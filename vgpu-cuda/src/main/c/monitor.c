/*
 * The hook's one thread: closes batches that nobody else closes, counts what has ended, beats the heart, keeps the connection.
 * It sleeps while the process has no work.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <linux/futex.h>
#include <unistd.h>

#include "express.h"
#include "hook.h"
#include "seat.h"

static const uint64_t TICK_NS = NS_PER_MS, DRAIN_TICK_NS = 60u * NS_PER_US, CONTENDED_TICK_NS = 300u * NS_PER_US;
static const uint64_t LINGER_NS = 20u * NS_PER_MS, SLEEP_NS = 50u * NS_PER_MS;
static const uint64_t RETRY_NS = 5u * NS_PER_MS, SLOW_RETRY_NS = 100u * NS_PER_MS, WELCOME_NS = 200u * NS_PER_MS;
enum { STACK = 256 * 1024, QUICK_TRIES = 400, REFRESH = 64 };

struct connection {
  const char *run_dir, *lease;
  int welcome; /* the seat has answered our HELLO */
  unsigned tries;
  uint64_t next_try_ns, asked_ns;
};

static struct connection connection;
static uint32_t asleep; /* 1 while the monitor sleeps for long: whoever begins work wakes it */
static uint32_t stop, inside; /* inside: the monitor is in the driver */
static const uint64_t LEAVE_NS = 10u * NS_PER_MS;

static void vgpu__follow_seat(uint64_t now) {
  struct shm_message message;
  int got = vgpu__seat_receive(&message);
  if (got == VGPU_SEAT_MESSAGE && message.type == SHM_MESSAGE_WELCOME) {
    if (message.status == SHM_STATUS_OK && message.slot_number == vgpu_hook.slot_number) {
      connection.welcome = 1;
      connection.tries = 0;
    } else {
      message.text[sizeof message.text - 1] = '\0';
      vgpu__log("the seat does not take slot %u back: status %u, %s", vgpu_hook.slot_number, message.status,
                (const char *)message.text);
      vgpu__seat_close();
      connection.tries = QUICK_TRIES;
    }
  }
  if (got == VGPU_SEAT_GONE && connection.welcome) {
    connection.welcome = 0;
    connection.next_try_ns = now;
    vgpu__log("the connection to the seat is gone");
  }
  /* A HELLO without an answer: a stopped seat, perhaps. Another may take over meanwhile. */
  if (!connection.welcome && got != VGPU_SEAT_GONE && now - connection.asked_ns > WELCOME_NS) vgpu__seat_close();
  if (!connection.welcome && now >= connection.next_try_ns && !vgpu__seat_connected()) {
    connection.asked_ns = now;
    vgpu__seat_connect(connection.run_dir, connection.lease);
    connection.tries++;
    connection.next_try_ns = now + (connection.tries < QUICK_TRIES ? RETRY_NS : SLOW_RETRY_NS);
  }
}

/* Autonomous while the seat is silent; again under its grants when its heart beats. */
static void vgpu__follow_heartbeat(uint64_t now, int working) {
  int silent = vgpu__seat_is_silent(now);
  if (!silent) vgpu__gate_set_autonomous(0);
  else if (working && !connection.welcome) vgpu__gate_set_autonomous(1);
}

/* Somebody waits for the end of our work: by the seat's word, or by our bit in the express lane. */
static int vgpu__wants_promptness(void) {
  return vgpu_express.bit != 0 || (LOAD(vgpu_hook.grant->turn_flags) & SHM_TURN_CONTENDED) != 0;
}

static void vgpu__rest(int working, int soon, uint64_t express_ns, uint64_t idle_ns) {
  uint32_t word = LOAD_ACQUIRE(vgpu_hook.grant->word);
  if (working || idle_ns < LINGER_NS) {
    uint64_t tick = TICK_NS;
    if (soon) tick = DRAIN_TICK_NS;
    else if (working && !vgpu__word_open(word) && LOAD(vgpu_hook.slot->busy) != 0) tick = DRAIN_TICK_NS;
    else if (express_ns != 0) tick = express_ns;
    else if (working && vgpu__wants_promptness()) tick = CONTENDED_TICK_NS;
    vgpu__futex_wait(&vgpu_hook.grant->word, word, tick);
    return;
  }
  __atomic_store_n(&asleep, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&vgpu_hook.slot->busy, __ATOMIC_SEQ_CST) == 0 && LOAD(vgpu_hook.slot->waiting) == 0) {
    vgpu__futex_wait(&asleep, 1, SLEEP_NS);
  }
  __atomic_store_n(&asleep, 0, __ATOMIC_SEQ_CST);
}

static void *vgpu__monitor(void *unused) {
  uint64_t worked_ns = 0;
  (void)unused;
  prctl(PR_SET_NAME, "vgpu-monitor", 0, 0, 0);
  prctl(PR_SET_TIMERSLACK, 5000, 0, 0, 0); /* of this thread only */
  for (unsigned turn = 0;; turn++) {
    uint64_t now = vgpu__now_ns();
    __atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) break;
    int batches = vgpu__tend_lanes(now);
    STORE_RELEASE(inside, 0);
    int pending = vgpu__gate_tend(now);
    uint64_t express_ns = vgpu__express_tend(now);
    int working = batches > 0 || pending || express_ns != 0 || LOAD(vgpu_hook.slot->busy) != 0 || LOAD(vgpu_hook.slot->waiting) != 0;
    if (working) worked_ns = now;
    STORE_RELEASE(vgpu_hook.slot->heartbeat_ns, now);
    vgpu__follow_seat(now);
    vgpu__follow_heartbeat(now, working);
    if (turn % REFRESH == 0) vgpu__publish_passed();
    vgpu__rest(working, pending, express_ns, now - worked_ns);
  }
  STORE_RELEASE(inside, 0);
  return NULL;
}

void vgpu__monitor_wake(void) {
  if (__atomic_load_n(&asleep, __ATOMIC_SEQ_CST) == 0 || __atomic_exchange_n(&asleep, 0, __ATOMIC_SEQ_CST) == 0) return;
  int kept = errno;
  /* The monitor's last beat may be old, and until it wakes the seat must not take us for stopped. */
  STORE_RELEASE(vgpu_hook.slot->heartbeat_ns, vgpu__now_ns());
  syscall(SYS_futex, &asleep, FUTEX_WAKE, 1, NULL, NULL, 0);
  errno = kept;
}

int vgpu__monitor_start(const char *run_dir, const char *lease) {
  pthread_t thread;
  pthread_attr_t attributes;
  uint64_t all = ~(uint64_t)0, before = 0;
  connection = (struct connection){.run_dir = run_dir, .lease = lease, .welcome = 1};
  if (pthread_attr_init(&attributes) != 0) return -1;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, STACK);
  /* A thread is born with its maker's mask: no signal of the program is ever handled on ours. */
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
  int failed = pthread_create(&thread, &attributes, vgpu__monitor, NULL);
  if (failed) {
    pthread_attr_destroy(&attributes);
    pthread_attr_init(&attributes); /* a program with much thread-local data: the usual stack */
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    failed = pthread_create(&thread, &attributes, vgpu__monitor, NULL);
  }
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
  pthread_attr_destroy(&attributes);
  return failed ? -1 : 0;
}

void vgpu__monitor_forget(void) {
  asleep = 0;
  inside = 0;
  connection = (struct connection){.welcome = 0};
}

/* At the program's end the driver ends too: the monitor calls nothing of it any more. It is out of it in a moment, if not blocked. */
__attribute__((destructor)) static void vgpu__monitor_stop(void) {
  uint64_t deadline = vgpu__now_ns() + LEAVE_NS;
  __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&inside, __ATOMIC_SEQ_CST) && vgpu__now_ns() < deadline) vgpu__sleep_ns(20u * NS_PER_US);
  vgpu__express_leave();
}
