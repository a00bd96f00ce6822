package dev.vgpu.cli;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What many clients of {@code vgpu serve}'s listeners do to it and to the seat in its process. */
class ListenersIT {
  private static final byte[] SCRAPE =
      "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".getBytes(US_ASCII);
  private static final Pattern PORT = Pattern.compile("metrics at http://127\\.0\\.0\\.1:(\\d+)/");

  private CommandNode node;

  @BeforeEach
  void open() throws IOException {
    node = CommandNode.open();
  }

  @AfterEach
  void close() throws IOException {
    node.close();
  }

  /** Serves with at most so many open files. */
  private InetSocketAddress serve(int files) throws Exception {
    CommandNode.Command serve =
        node.vgpuWithFiles(files, "serve", "--metrics", "0").prints("metrics at");
    Matcher port = PORT.matcher(serve.out());
    assertThat(port.find()).as("%s", serve).isTrue();
    return new InetSocketAddress(InetAddress.getLoopbackAddress(), Integer.parseInt(port.group(1)));
  }

  private static final class Scrapes {
    private int answered;
    private int refused;
  }

  /** Sends all requests before it reads an answer. */
  private static Scrapes scrape(InetSocketAddress address, int count) throws IOException {
    Scrapes scrapes = new Scrapes();
    List<SocketChannel> channels = new ArrayList<>();
    try (Selector selector = Selector.open()) {
      for (int i = 0; i < count; i++) {
        SocketChannel channel = SocketChannel.open();
        channels.add(channel);
        channel.configureBlocking(false);
        channel.connect(address);
        channel.register(selector, SelectionKey.OP_CONNECT, ByteBuffer.allocate(16));
      }
      while (scrapes.answered + scrapes.refused < count) {
        assertThat(selector.select(60_000)).as("clients that hear something").isPositive();
        for (SelectionKey key : selector.selectedKeys()) {
          proceed(key, scrapes);
        }
        selector.selectedKeys().clear();
      }
    } finally {
      for (SocketChannel channel : channels) {
        channel.close();
      }
    }
    return scrapes;
  }

  private static void proceed(SelectionKey key, Scrapes scrapes) throws IOException {
    SocketChannel channel = (SocketChannel) key.channel();
    ByteBuffer begin = (ByteBuffer) key.attachment();
    try {
      if (key.isConnectable() && channel.finishConnect()) {
        channel.write(ByteBuffer.wrap(SCRAPE));
        key.interestOps(SelectionKey.OP_READ);
      } else if (channel.read(begin) >= 0 && begin.hasRemaining()) {
        return;
      } else if (US_ASCII.decode(begin.flip()).toString().startsWith("HTTP/1.1 200")) {
        scrapes.answered++;
        channel.close();
      } else {
        refuse(channel, scrapes);
      }
    } catch (IOException e) {
      refuse(channel, scrapes);
    }
  }

  private static void refuse(SocketChannel channel, Scrapes scrapes) throws IOException {
    scrapes.refused++;
    channel.close();
  }

  @Test
  void tenThousandScrapesAtOnceAreAnswered() throws Exception {
    int atOnce = 10_000;
    int files = 16_000;
    InetSocketAddress address = serve(files);

    Scrapes scrapes = scrape(address, atOnce);
    awaitAnswers(address);
    // On a busy machine, some take so long that they are ended for those that wait.
    for (int tries = 0; tries < 3 && scrapes.answered < files / 4; tries++) {
      scrapes = scrape(address, atOnce);
      awaitAnswers(address);
    }

    // Those beyond a quarter of the files may be refused, so that the seat keeps its own.
    assertThat(scrapes.answered).isGreaterThanOrEqualTo(files / 4);
    assertThat(scrapes.answered + scrapes.refused).isEqualTo(atOnce);
    assertThat(node.leases()).isEmpty();
  }

  /** Waits until a hundred scrapes at once are answered: the connections before are closed then. */
  private static void awaitAnswers(InetSocketAddress address) throws InterruptedException {
    CommandNode.await(
        () -> {
          try {
            return scrape(address, 100).answered == 100;
          } catch (IOException e) {
            throw new UncheckedIOException(e);
          }
        },
        "a hundred scrapes at once");
  }

  @Test
  void clientsThatHoldConnectionsLeaveTheSeatItsFiles() throws Exception {
    InetSocketAddress address = serve(1_000);
    List<Socket> silent = new ArrayList<>();
    try {
      for (int i = 0; i < 1_200; i++) {
        silent.add(new Socket(address.getAddress(), address.getPort()));
      }
      assertThat(node.leases()).isEmpty();
    } finally {
      for (Socket socket : silent) {
        socket.close();
      }
    }
  }
}
