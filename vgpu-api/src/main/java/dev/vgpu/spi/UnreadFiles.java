package dev.vgpu.spi;

import java.io.IOException;

/**
 * Finds the open files that others pass to a Unix socket with their messages ({@code SCM_RIGHTS}),
 * before they are read. What was only looked at stays in the socket, and the kernel ends none of
 * the files. Confined to one thread at a time.
 *
 * @see EnforcementBackend#refuseFiles
 */
public interface UnreadFiles {
  /** In place of a number of bytes: nothing has arrived. */
  int NOTHING = -1;

  /** In place of a number of bytes: files were passed along. */
  int FILES = -2;

  /**
   * {@return the connection that the socket has just accepted} Call it after each.
   *
   * @throws IOException if it is not certain which one that is
   */
  Connection accepted() throws IOException;

  /** One connection. Not used any more once its channel is closed. */
  interface Connection {
    /**
     * {@return how many bytes can be read with no file; 0: none will come; {@link #NOTHING}; {@link
     * #FILES}}
     *
     * @param most how many bytes to look at
     * @throws IOException if the connection is broken
     */
    int readable(int most) throws IOException;

    /**
     * {@return whether the kernel might have to end files, if the connection was closed now} Call
     * it when the other end cannot send any more.
     */
    boolean mayHoldFiles();

    /**
     * Reads what has arrived, and drops it with its files. Blocks for as long as the kernel takes
     * to end them. Call it when the other end cannot send any more. On any thread.
     */
    void discard();
  }
}
