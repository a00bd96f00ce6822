package dev.vgpu.k8s.scheduler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.k8s.node.MockApi;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaderElectionRecord;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.Lock;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Processes whose clocks differ, with one lease. */
class ElectionTest {
  private static final ZonedDateTime START =
      ZonedDateTime.of(2026, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC);

  private final MockApi server = new MockApi();
  private KubernetesClient api;
  private double nowS;

  @BeforeEach
  void open() {
    api = server.client();
  }

  @AfterEach
  void close() {
    api.close();
    server.close();
  }

  private Election election(String identity, double clockIsWrongByS) {
    return election(new LeaseLock("default", "lease", identity), clockIsWrongByS);
  }

  private Election election(Lock lock, double clockIsWrongByS) {
    return new Election(
        lock, api, () -> nowS, () -> START.plusNanos((long) ((nowS + clockIsWrongByS) * 1e9)));
  }

  @ParameterizedTest
  @ValueSource(doubles = {-3600, -16, 0, 16, 3600})
  void aLeaseLastsAsLongAsItsLeaderLivesAndNoLonger(double clockIsWrongByS) {
    Election leader = election("leader", clockIsWrongByS);
    Election standby = election("standby", 0);
    for (int i = 0; i < 20; i++) {
      assertThat(leader.step()).isTrue();
      assertThat(standby.step()).isFalse();
      nowS += 2;
    }
    assertThat(leader.leads()).isTrue();
    assertThat(standby.leads()).isFalse();
    nowS += 13;
    assertThat(standby.step()).isFalse();
    nowS += 1;
    assertThat(standby.step()).as("the leader is dead").isTrue();
    assertThat(standby.leads()).isTrue();
  }

  /** Its request to renew the lease may hang for longer than the lease lasts. */
  @Test
  void whoeverCannotRenewStopsBeforeAnotherOneMayLead() {
    Election leader = election("leader", 0);
    Election standby = election("standby", 0);
    assertThat(leader.step()).isTrue();
    assertThat(standby.step()).isFalse();
    nowS += Election.RENEW_S - 0.1;
    assertThat(leader.leads()).isTrue();
    nowS += 0.1;
    assertThat(leader.leads()).isFalse();
    nowS += Election.LEASE_S - Election.RENEW_S;
    assertThat(standby.step()).isFalse();
    nowS += 0.1;
    assertThat(standby.step()).isTrue();
    assertThat(leader.step()).isFalse();
  }

  /** A renewal counts from its request on: others may have seen the record since then. */
  @Test
  void aSlowRenewalCountsFromItsBeginning() {
    Lock slow =
        new LeaseLock("default", "lease", "leader") {
          @Override
          public synchronized void update(KubernetesClient client, LeaderElectionRecord record) {
            super.update(client, record);
            nowS += 9;
          }
        };
    Election leader = election(slow, 0);
    assertThat(leader.step()).isTrue();
    assertThat(leader.step()).isTrue();
    assertThat(leader.leads()).isTrue();
    nowS += 1;
    assertThat(leader.leads()).isFalse();
  }

  @Test
  void whoeverLosesARaceDoesNotLead() {
    Election first = election("first", 0);
    Lock late =
        new LeaseLock("default", "lease", "late") {
          @Override
          public synchronized void create(KubernetesClient client, LeaderElectionRecord record) {
            assertThat(first.step()).isTrue();
            super.create(client, record);
          }
        };
    Election second = election(late, 0);
    assertThatThrownBy(second::step).isInstanceOf(KubernetesClientException.class);
    assertThat(second.leads()).isFalse();
    assertThat(first.leads()).isTrue();
  }

  @Test
  void anotherOneMayLeadBetweenTwoTermsButNotWithinOne() {
    Election one = election("one", 0);
    Election other = election("other", 0);
    assertThat(one.step()).isTrue();
    assertThat(other.step()).isFalse();
    nowS += 60;
    assertThat(one.step()).as("nobody else has taken it").isTrue();
    assertThat(one.term()).isEqualTo(1);
    assertThat(other.step()).isFalse();
    nowS += 60;
    assertThat(other.step()).isTrue();
    assertThat(one.step()).isFalse();
    other.release();
    assertThat(other.leads()).isFalse();
    assertThat(one.step()).as("given back, without waiting").isTrue();
    assertThat(one.term()).isEqualTo(2);
  }
}
