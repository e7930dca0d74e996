package io.icebergcrypto.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class JsonTest {
  private record Problem(String path, Long length) {}

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
