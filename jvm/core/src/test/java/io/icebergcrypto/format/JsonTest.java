package io.icebergcrypto.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Instant;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class JsonTest {
  private record Problem(String path, Long length) {}

  private enum Word {
    TWO_WORDS
  }

  private record Entry(Word kind, String keyId, Instant madeAt) {}

  @Test
  void everyKindOfValueInOrder() {
    Map<String, Object> json = new LinkedHashMap<>();
    json.put("text", "a<b>'ü");
    json.put("long", Long.MIN_VALUE);
    json.put("double", 1.5e300);
    json.put("yes", true);
    json.put("none", null);
    json.put("list", Arrays.asList(1, null, "b", List.of()));
    json.put("records", List.of(new Problem("a\"b", null)));
    json.put("map", Map.of("inner", Map.of()));
    assertThat(Json.of(json))
        .isEqualTo(
            "{\"text\":\"a<b>'ü\",\"long\":-9223372036854775808,\"double\":1.5E300,"
                + "\"yes\":true,\"none\":null,\"list\":[1,null,\"b\",[]],"
                + "\"records\":[{\"path\":\"a\\\"b\",\"length\":null}],\"map\":{\"inner\":{}}}");
  }

  /** What users get has these names, in this order. */
  @Test
  void theComponentsOfARecordByTheirNames() {
    Ags1Layout layout = new Ags1Layout(1024, 3, 2100);
    assertThat(Json.of(Json.map(layout)))
        .isEqualTo("{\"block_size\":1024,\"block_count\":3,\"plaintext_length\":2100}");
    Map<String, Object> map = Json.map(new Entry(Word.TWO_WORDS, null, Instant.EPOCH));
    assertThat(map).containsEntry("made_at", Instant.EPOCH);
    assertThat(Json.of(map))
        .isEqualTo("{\"kind\":\"two words\",\"key_id\":null,\"made_at\":\"1970-01-01T00:00:00Z\"}");
  }

  @ParameterizedTest
  @ValueSource(doubles = {Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY})
  void numbersThatJsonLacks(double number) {
    assertThatThrownBy(() -> Json.of(Map.of("a", number)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void textsAreReadFromAnObject() {
    assertThat(Json.texts("{\"a\":\"1\",\"b\":\"\"}")).isEqualTo(Map.of("a", "1", "b", ""));
    assertThat(Json.texts("{}")).isEmpty();
    assertThatThrownBy(() -> Json.texts("{\"a\":{}}")).isInstanceOf(RuntimeException.class);
  }
}
