package dev.vgpu.k8s.http;

import io.fabric8.kubernetes.client.internal.CertUtils;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * The PEM files of a server that knows its clients. Immutable.
 *
 * @param certificate the server's certificate, and those between it and its authority
 * @param key its private key, RSA or EC, without a password
 * @param clientAuthority the authority of the clients' certificates; no other one is trusted
 */
public record TlsFiles(Path certificate, Path key, Path clientAuthority) {
  private static final char[] NO_PASSWORD = {};

  /**
   * {@return what a server needs} The files are read now, and not again.
   *
   * @throws IOException if a file cannot be read, or has no certificate or key; the message names
   *     it
   */
  public SSLContext read() throws IOException {
    try {
      KeyManagerFactory keys =
          KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
      keys.init(own(), NO_PASSWORD);
      TrustManagerFactory trusted =
          TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
      trusted.init(authority());
      SSLContext tls = SSLContext.getInstance("TLS");
      tls.init(keys.getKeyManagers(), trusted.getTrustManagers(), null);
      return tls;
    } catch (GeneralSecurityException e) {
      throw new IOException("cannot be used for TLS: " + this + ": " + e.getMessage(), e);
    }
  }

  private KeyStore own() throws IOException, GeneralSecurityException {
    GeneralSecurityException refusal = null;
    for (String kind : new String[] {"RSA", "EC"}) {
      try (InputStream chain = Files.newInputStream(certificate);
          InputStream secret = Files.newInputStream(key)) {
        return CertUtils.createKeyStore(chain, secret, kind, NO_PASSWORD, null, NO_PASSWORD);
      } catch (GeneralSecurityException e) {
        refusal = e;
      }
    }
    throw new IOException(
        "no certificate with its RSA or EC key: " + certificate + ", " + key, refusal);
  }

  private KeyStore authority() throws IOException, GeneralSecurityException {
    KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null, null);
    try (InputStream in = Files.newInputStream(clientAuthority)) {
      for (Certificate one : CertificateFactory.getInstance("X.509").generateCertificates(in)) {
        store.setCertificateEntry("authority-" + store.size(), one);
      }
    }
    if (store.size() == 0) {
      throw new IOException("no certificate: " + clientAuthority);
    }
    return store;
  }
}
