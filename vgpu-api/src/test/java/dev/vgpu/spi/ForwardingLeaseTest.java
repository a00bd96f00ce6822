package dev.vgpu.spi;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class ForwardingLeaseTest {
  /** A default method that is not forwarded would hide the lease beneath. */
  @Test
  void forwardsAllThereIs() {
    List<String> own =
        Arrays.stream(ForwardingLease.class.getDeclaredMethods())
            .map(ForwardingLeaseTest::signature)
            .toList();
    assertThat(EnforcedLease.class.getMethods())
        .extracting(ForwardingLeaseTest::signature)
        .allSatisfy(signature -> assertThat(own).contains(signature));
  }

  private static String signature(Method method) {
    return method.getName() + Arrays.toString(method.getParameterTypes());
  }
}
