package dev.vgpu.samples.inference;

import com.fasterxml.jackson.core.JsonLocation;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamWriteFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.exc.MismatchedInputException;
import com.fasterxml.jackson.databind.exc.UnrecognizedPropertyException;
import com.fasterxml.jackson.databind.json.JsonMapper;
import io.javalin.http.ContentTooLargeResponse;
import io.javalin.http.Context;
import java.io.IOException;
import java.io.InputStream;
import java.util.stream.Collectors;

/** JSON as this server reads and writes it: strict in, fast out. */
final class Json {
  /** The largest body that is read. */
  static final int MAX_BODY_BYTES = 4 << 20;

  static final JsonMapper MAPPER =
      JsonMapper.builder()
          .enable(
              DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES,
              DeserializationFeature.FAIL_ON_TRAILING_TOKENS,
              DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES,
              DeserializationFeature.FAIL_ON_NULL_CREATOR_PROPERTIES)
          .enable(StreamWriteFeature.USE_FAST_DOUBLE_WRITER) // vectors are nearly all of the output
          .build();

  private Json() {}

  /**
   * Reads a request's body.
   *
   * @throws BadInputException if the body is not such a value; says where and why
   */
  static <T> T read(Context request, Class<T> type) {
    try (InputStream in = request.bodyInputStream()) {
      // Javalin's own limit checks Content-Length, which a chunked request does not have.
      byte[] body = in.readNBytes(MAX_BODY_BYTES + 1);
      if (body.length > MAX_BODY_BYTES) {
        throw new ContentTooLargeResponse("a body is at most " + MAX_BODY_BYTES + " bytes long");
      }
      return MAPPER.readValue(body, type);
    } catch (JsonProcessingException e) {
      throw new BadInputException("not the JSON that is expected: " + reason(e));
    } catch (IOException e) {
      throw new BadInputException("the body ended early: " + e.getMessage());
    }
  }

  /** {@return what is wrong, in the client's terms: its fields, not our classes} */
  private static String reason(JsonProcessingException e) {
    if (e instanceof UnrecognizedPropertyException unknown) {
      return "unknown field '" + unknown.getPropertyName() + "'";
    }
    if (e instanceof MismatchedInputException mismatch) {
      String path =
          mismatch.getPath().stream()
              .map(at -> at.getFieldName() == null ? "[" + at.getIndex() + "]" : at.getFieldName())
              .collect(Collectors.joining("."));
      return path.isEmpty() ? "no JSON object" : path + " is missing or of another type";
    }
    JsonLocation at = e.getLocation();
    return e.getOriginalMessage()
        + (at == null ? "" : " (line " + at.getLineNr() + ", column " + at.getColumnNr() + ")");
  }
}
