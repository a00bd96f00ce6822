package dev.vgpu.cuda.pages;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import dev.vgpu.cuda.layout.ShmLayout;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Words on shared pages that the kernel changes when the thread that owns them ends, however it
 * ends: robust futexes ({@code set_robust_list(2)}). The kernel then sets {@link #ENDED} and wakes
 * one waiter. When a process is killed, that comes before its memory is unmapped. Its sockets and
 * file locks end only after that, which for a JVM may be tens of milliseconds later.
 *
 * <p>The kernel finds a word at a fixed distance from its node in a list of addresses. No address
 * belongs on a page that others read. So each page is mapped a second time, right behind private
 * memory that holds its node.
 *
 * <p>Confined to one thread, the owner of the words.
 */
public final class RobustWords implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(RobustWords.class);

  /** The flag of a word whose thread has ended: {@code FUTEX_OWNER_DIED}. */
  public static final int ENDED = ShmLayout.SEAT_THREAD_ENDED;

  /** The kernel wakes nobody without this flag: {@code FUTEX_WAITERS}. */
  private static final int WAITERS = 0x8000_0000;

  /** A multiple of the kernel's page, whatever its size. */
  private static final long STEP = 65_536;

  /** The kernel follows a list for 2,048 nodes: {@code ROBUST_LIST_LIMIT}. */
  private static final int MOST = 2_048;

  /** The layout of {@code struct robust_list_head}: the first node, the distance, a pending one. */
  private static final int DISTANCE = 8;

  private record Word(SharedPage page, Pointer node) {}

  private final int offset;
  private final int owned;
  private final @Nullable Pointer before = LinuxCalls.robustList();
  private final Memory head = new Memory(LinuxCalls.ROBUST_HEAD_BYTES);
  private final List<Word> words = new ArrayList<>();

  /**
   * Creates an empty list for the calling thread.
   *
   * @param offset where the word is, on every page
   */
  RobustWords(int offset) {
    this.offset = offset;
    this.owned = LinuxCalls.threadId() | WAITERS;
    head.clear();
    head.setPointer(0, head);
    head.setLong(DISTANCE, STEP + offset);
    LinuxCalls.robustList(head);
  }

  /** Makes the calling thread the owner of a page's word. Without room for that, does nothing. */
  public void own(SharedPage page) {
    Pointer node = words.size() < MOST ? LinuxCalls.mapAgain(page, STEP) : null;
    if (node == null) {
      log.debug("the end of this thread will not show on a page");
      return;
    }
    node.setPointer(0, head.getPointer(0));
    head.setPointer(0, node);
    words.add(new Word(page, node));
    page.setInt(offset, owned);
  }

  /** Gives a page's word up: nothing changes it any more. */
  public void disown(SharedPage page) {
    for (int i = words.size() - 1; i >= 0; i--) {
      if (words.get(i).page() == page) {
        remove(i);
      }
    }
  }

  private void remove(int index) {
    Word word = words.remove(index);
    // The last word is the first node.
    Pointer previous = index == words.size() ? head : words.get(index).node();
    previous.setPointer(0, word.node().getPointer(0));
    LinuxCalls.unmap(word.node(), 2 * STEP);
  }

  /** Does what the kernel does when the thread ends, and gives all words up. */
  @Override
  public void close() {
    LinuxCalls.robustList(before);
    while (!words.isEmpty()) {
      SharedPage page = words.get(words.size() - 1).page();
      if (page.compareAndSetInt(offset, owned, WAITERS | ENDED)) { // else another thread owns it
        LinuxCalls.wakeAll(page, offset);
      }
      remove(words.size() - 1);
    }
  }
}
