package dev.vgpu.dashboard;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.junit.jupiter.api.Test;

/** What is written is JSON to another parser, with the same values. */
class JsonTextTest {
  private static final ObjectMapper JSON = new ObjectMapper();

  @Test
  void everyCharacterOfAStringSurvives() throws Exception {
    StringBuilder all = new StringBuilder();
    for (char each = 0; each < 0x3000; each++) {
      all.append(each);
    }
    all.append("</script><!--\u2028\u2029\ud83d\ude00");
    JsonText json = new JsonText().object().put(all.toString(), all.toString()).endObject();

    assertThat(json.toString()).doesNotContain("\n", "\r");
    assertThat(JSON.readTree(json.toString()).path(all.toString()).asText())
        .isEqualTo(all.toString());
  }

  @Test
  void valuesNestInAnyOrder() throws Exception {
    JsonText json = new JsonText();
    json.object().array("empty").endArray().object("none").endObject();
    json.array("list").add(1).add("two").add(2.5).add((String) null).object().put("a", true);
    json.endObject().endArray().putJson("given", "{\"x\":[]}").putNull("nothing").endObject();
    JsonNode read = JSON.readTree(json.toString());

    assertThat(read)
        .isEqualTo(
            JSON.readTree(
                "{\"empty\":[],\"none\":{},\"list\":[1,\"two\",2.5,null,{\"a\":true}],"
                    + "\"given\":{\"x\":[]},\"nothing\":null}"));
  }

  @Test
  void whatIsNoNumberIsNull() throws Exception {
    JsonText json = new JsonText().object();
    json.put("nan", Double.NaN).put("much", Double.POSITIVE_INFINITY).put("large", 1e300);
    JsonNode read = JSON.readTree(json.put("least", Long.MIN_VALUE).endObject().toString());

    assertThat(read.path("nan").isNull()).isTrue();
    assertThat(read.path("much").isNull()).isTrue();
    assertThat(read.path("large").asDouble()).isEqualTo(1e300);
    assertThat(read.path("least").asLong()).isEqualTo(Long.MIN_VALUE);
  }
}
