package io.icebergcrypto.format;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.util.EnumSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class FileMagicTest {
  @ParameterizedTest
  @CsvSource({
    "PARE, PARE", "PAR1, PAR1", "AGS1, AGS1", "PFA1, PUFFIN", "ORC, ORC", "PAR2, LATER",
    "PAR, OTHER", "OR, OTHER", "AGS, OTHER", "AGS2, LATER", "pare, OTHER", "Obj, OTHER",
    "x, OTHER",
  })
  void firstBytesDecide(String head, FileMagic expected) {
    assertThat(of(head)).isEqualTo(expected);
    assertThat(of(head + "\0\u00ff and more")).isEqualTo(expected);
  }

  @Test
  void avroHasItsVersionInTheMagic() {
    assertThat(of("Obj\u0001")).isEqualTo(FileMagic.AVRO);
    assertThat(of("Obj\u0002")).isEqualTo(FileMagic.OTHER);
  }

  @Test
  void noBytesIsEmpty() {
    assertThat(of("")).isEqualTo(FileMagic.EMPTY);
  }

  @ParameterizedTest
  @ValueSource(strings = {"{", "{\"format-version\": 3}", " \t\r\n{}", "\n\n\n\n\n\n\n\n\n\n{"})
  void anOpeningBraceIsJson(String text) {
    assertThat(of(text)).isEqualTo(FileMagic.JSON);
  }

  @Test
  void onlyTheHeadIsSearchedForTheBrace() {
    assertThat(of(" ".repeat(FileMagic.HEAD_LENGTH - 1) + "{")).isEqualTo(FileMagic.JSON);
    assertThat(of(" ".repeat(FileMagic.HEAD_LENGTH) + "{")).isEqualTo(FileMagic.OTHER);
    assertThat(of(" ".repeat(10))).isEqualTo(FileMagic.OTHER);
    assertThat(of("[{}]")).isEqualTo(FileMagic.OTHER);
  }

  @Test
  void onlyPareAndAgs1AreEncrypted() {
    assertThat(EnumSet.allOf(FileMagic.class).stream().filter(FileMagic::encrypted))
        .containsExactly(FileMagic.PARE, FileMagic.AGS1);
  }

  @Test
  void formats() {
    assertThat(FileMagic.PARE.format()).isEqualTo(FileMagic.PAR1.format()).isEqualTo("parquet");
    assertThat(FileMagic.AGS1.format()).isEqualTo("aes-gcm-stream");
    assertThat(FileMagic.OTHER.format()).isEqualTo("unknown");
  }

  private static FileMagic of(String head) {
    return FileMagic.of(head.getBytes(StandardCharsets.ISO_8859_1));
  }
}
