package dev.vgpu.k8s.http;

import io.fabric8.kubernetes.client.KubernetesClientException;
import java.net.HttpURLConnection;

/** What a failed call of the API server means. */
public final class ApiFailures {
  private static final int UNPROCESSABLE = 422;

  private ApiFailures() {}

  /** {@return whether its object does not exist} */
  public static boolean isGone(KubernetesClientException e) {
    return e.getCode() == HttpURLConnection.HTTP_NOT_FOUND;
  }

  /** {@return whether its kind of objects is not there, or not shown} */
  public static boolean isMissing(KubernetesClientException e) {
    return isGone(e) || e.getCode() == HttpURLConnection.HTTP_FORBIDDEN;
  }

  /** {@return whether its object was changed by somebody else} */
  public static boolean isConflict(KubernetesClientException e) {
    return e.getCode() == HttpURLConnection.HTTP_CONFLICT;
  }

  /** {@return whether it surely changed nothing; other answers may come too late} */
  public static boolean isRefused(KubernetesClientException e) {
    return e.getCode() >= HttpURLConnection.HTTP_BAD_REQUEST
        && e.getCode() < HttpURLConnection.HTTP_INTERNAL_ERROR
        && e.getCode() != HttpURLConnection.HTTP_CLIENT_TIMEOUT
        && !isConflict(e);
  }

  /**
   * {@return whether calls about other objects may succeed: this one is forbidden, or not valid}
   */
  public static boolean isOnlyOfItsObject(KubernetesClientException e) {
    return e.getCode() == HttpURLConnection.HTTP_BAD_REQUEST
        || e.getCode() == HttpURLConnection.HTTP_ENTITY_TOO_LARGE
        || e.getCode() == UNPROCESSABLE
        || isMissing(e)
        || isConflict(e);
  }
}
