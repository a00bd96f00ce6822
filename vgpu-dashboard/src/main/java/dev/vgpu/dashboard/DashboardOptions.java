package dev.vgpu.dashboard;

import static java.util.Objects.requireNonNull;

import java.time.Duration;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** How a {@link Dashboard} is served. Immutable. */
public final class DashboardOptions {
  /** The default of {@link Builder#mostViewers}. */
  public static final int DEFAULT_VIEWERS = 32;

  private final WebAddress address;
  private final @Nullable Token token;
  private final Duration interval;
  private final int mostViewers;
  private final Supplier<String> mig;

  private DashboardOptions(Builder builder) {
    this.address = builder.address;
    this.token = builder.token;
    this.interval = builder.interval;
    this.mostViewers = builder.mostViewers;
    this.mig = builder.mig;
  }

  /** {@return a builder} */
  public static Builder builder() {
    return new Builder();
  }

  /** {@return where it listens} */
  public WebAddress address() {
    return address;
  }

  /** {@return the token that a viewer must give; empty if none is needed} */
  public Optional<Token> token() {
    return Optional.ofNullable(token);
  }

  /** {@return the time between two looks at the pool} */
  public Duration interval() {
    return interval;
  }

  /** {@return how many viewers there may be at once} */
  public int mostViewers() {
    return mostViewers;
  }

  /** {@return the source of the MIG instances} */
  public Supplier<String> mig() {
    return mig;
  }

  /** Builds options. Not safe for use by several threads. */
  public static final class Builder {
    private WebAddress address = WebAddress.fromString("");
    private @Nullable Token token;
    private Duration interval = Duration.ofSeconds(1);
    private int mostViewers = DEFAULT_VIEWERS;
    private Supplier<String> mig = () -> "null";

    private Builder() {}

    /**
     * {@return this builder, with another address; the default is port {@value
     * WebAddress#DEFAULT_PORT} of the loopback interface}
     *
     * @param value where to listen
     */
    public Builder address(WebAddress value) {
      this.address = requireNonNull(value, "address");
      return this;
    }

    /**
     * {@return this builder, with a token; by default no viewer needs one}
     *
     * @param value what viewers must give
     */
    public Builder token(Token value) {
      this.token = requireNonNull(value, "token");
      return this;
    }

    /**
     * {@return this builder, with another interval; the default is one second}
     *
     * @param value the time between two looks at the pool, above 0
     * @throws IllegalArgumentException if it is not above 0
     */
    public Builder interval(Duration value) {
      if (value.isZero() || value.isNegative()) {
        throw new IllegalArgumentException("an interval is above 0: interval=" + value);
      }
      this.interval = value;
      return this;
    }

    /**
     * {@return this builder, with another number of viewers; the default is {@value
     * DashboardOptions#DEFAULT_VIEWERS}}
     *
     * @param value how many viewers there may be at once, at least 1
     * @throws IllegalArgumentException if it is less than 1
     */
    public Builder mostViewers(int value) {
      if (value < 1) {
        throw new IllegalArgumentException("at least one viewer: mostViewers=" + value);
      }
      this.mostViewers = value;
      return this;
    }

    /**
     * {@return this builder, with a source of the MIG instances; by default there is none, and the
     * page says so}
     *
     * @param value returns what {@code vgpu mig list --json} prints, or JSON's null; called on a
     *     thread of the dashboard every few looks
     */
    public Builder mig(Supplier<String> value) {
      this.mig = requireNonNull(value, "mig");
      return this;
    }

    /**
     * {@return the options}
     *
     * @throws IllegalArgumentException if other machines reach the address, and no token is set
     */
    public DashboardOptions build() {
      if (token == null && !address.isLoopback()) {
        throw new IllegalArgumentException(
            "others reach this address, so viewers need a token: address=" + address.inUrl());
      }
      return new DashboardOptions(this);
    }
  }
}
