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
  @Test
  void everyKindOfValueInOrder() {
    Map<String, Object> json = new LinkedHashMap<>();
    json.put("text", "a");
    json.put("int", 1);
    json.put("long", Long.MIN_VALUE);
    json.put("double", 1.5e300);
    json.put("yes", true);
    json.put("none", null);
    json.put("enum", FileMagic.PARE);
    json.put("list", Arrays.asList(1, null, "b", List.of()));
    json.put("map", Map.of("inner", Map.of()));
    assertThat(Json.object(json))
        .isEqualTo(
            "{\"text\": \"a\", \"int\": 1, \"long\": -9223372036854775808, \"double\": 1.5E300,"
                + " \"yes\": true, \"none\": null, \"enum\": \"PARE\","
                + " \"list\": [1, null, \"b\", []], \"map\": {\"inner\": {}}}");
    assertThat(Json.object(Map.of())).isEqualTo("{}");
  }

  @Test
  void textIsEscapedInNamesAndValues() {
    assertThat(Json.object(Map.of("a\"b", "\\ \n\r\t\0\u001f/ü\u65e5")))
        .isEqualTo("{\"a\\\"b\": \"\\\\ \\n\\r\\t\\u0000\\u001f/ü\u65e5\"}");
    assertThat(Json.object(Map.of("a", "\ud800"))).isEqualTo("{\"a\": \"\\ud800\"}");
    assertThat(Json.object(Map.of("a", "\ud83d\ude00"))).isEqualTo("{\"a\": \"\\ud83d\\ude00\"}");
  }

  @ParameterizedTest
  @ValueSource(doubles = {Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY})
  void numbersThatJsonLacks(double number) {
    assertThatThrownBy(() -> Json.object(Map.of("a", number)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void valuesThatJsonLacks() {
    assertThatThrownBy(() -> Json.object(Map.of("a", new byte[1])))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> Json.object(Map.of("a", Map.of(1, 2))))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
