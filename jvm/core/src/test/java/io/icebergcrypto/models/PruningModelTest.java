package io.icebergcrypto.models;

import io.icebergcrypto.commit.KeyRetention;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.SnapshotParser;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Keys that nothing needs, and who may need them still: {@link KeyRetention}, which is called here
 * on real metadata, beside NewKek and writers on REST, whose commits are no conflict and send no
 * KEK that was in the metadata when they began. What a job has staged is such a writer, too. Two
 * writers, two rotations with or without rewrap, expiry and pruning at any time. A writer that
 * began before a rotation commits within 30 days of it, which KeyRetention.REPLACED says.
 */
class PruningModelTest {
  private enum Defect {
    NONE,
    /** A KEK goes when it encrypts nothing. */
    PRUNES_WHAT_IS_UNUSED,
    /** A KEK goes 30 days after it was made, not after the newer one was. */
    COUNTS_FROM_ITS_OWN_AGE,
    /** What only older snapshots need goes. */
    LOOKS_AT_THE_CURRENT_SNAPSHOT,
    /** rotate_kek removes older KEKs at once, as on Hive. */
    ROTATION_REMOVES
  }

  private enum Var {
    TIME, // in steps of 15 days
    MADE1, // when a KEK was made, and one more
    MADE2,
    MADE3,
    IN1, // whether the table has it
    IN2,
    IN3,
    HELD1, // the KEK with which a writer has begun; -1: it has ended
    HELD2,
    LISTS1, // whether the table has the snapshot
    LISTS2,
    KEYS1, // the KEK under which its manifest list's key is; 0: the table has no such key
    KEYS2
  }

  private static final Var[] MADE = {Var.MADE1, Var.MADE2, Var.MADE3};
  private static final Var[] IN = {Var.IN1, Var.IN2, Var.IN3};
  private static final Var[] HELD = {Var.HELD1, Var.HELD2};
  private static final Var[] LISTS = {Var.LISTS1, Var.LISTS2};
  private static final Var[] KEYS = {Var.KEYS1, Var.KEYS2};
  private static final long BEGIN = System.currentTimeMillis();

  private record Pruning(Defect defect, int time, Map<List<Integer>, Set<String>> asked)
      implements Model<Var> {
    @Override
    public State<Var> initial() {
      return State.initial(Var.class).set(Var.MADE1, 1).set(Var.IN1, 1);
    }

    @Override
    public void steps(State<Var> s, Steps<Var> steps) {
      boolean mayPass = s.get(Var.TIME) < time;
      for (int i = 0; i < HELD.length; i++) {
        writer(s, steps, i);
        mayPass &= !isLate(s, i, 1);
      }

      if (mayPass) {
        steps.step("15 days pass", n -> n.add(Var.TIME, 1));
      }

      State<Var> pruned = s.copy();
      prune(pruned);
      if (!pruned.equals(s)) {
        steps.step("prune_encryption_keys, or any commit", this::prune);
      }

      int newest = newest(s);
      if (newest < MADE.length) {
        steps.step("rotate_kek", n -> rotates(n, newest, false));
        steps.step("rotate_kek, with rewrap", n -> rotates(n, newest, true));
      }
    }

    private static int newest(State<Var> s) {
      return s.has(Var.MADE3) ? 3 : s.has(Var.MADE2) ? 2 : 1;
    }

    /** Whether a writer that holds an older KEK would be later than 30 days. */
    private static boolean isLate(State<Var> s, int writer, int more) {
      int held = s.get(HELD[writer]);
      return held > 0 && held < newest(s) && s.get(Var.TIME) + more - (s.get(MADE[held]) - 1) > 2;
    }

    private void writer(State<Var> s, Steps<Var> steps, int i) {
      int held = s.get(HELD[i]);
      if (held == 0) {
        steps.step("writer " + (i + 1) + " begins", n -> n.set(HELD[i], newest(n)));
      } else if (held > 0) {
        steps.step("writer " + (i + 1) + " is killed", n -> n.set(HELD[i], -1));
        steps.step(
            "writer " + (i + 1) + " commits",
            n -> n.set(HELD[i], -1).set(LISTS[i], 1).set(KEYS[i], held));
      }

      if (s.has(LISTS[i])) {
        steps.step("the snapshot of writer " + (i + 1) + " expires", n -> n.set(LISTS[i], 0));
      }
    }

    /** NewKek.in */
    private void rotates(State<Var> n, int newest, boolean rewraps) {
      n.set(MADE[newest], n.get(Var.TIME) + 1).set(IN[newest], 1);
      prune(n);
      for (Var key : KEYS) {
        n.set(key, rewraps && n.has(key) ? newest + 1 : n.get(key));
      }

      for (int i = 0; i < newest && rewraps && defect == Defect.ROTATION_REMOVES; i++) {
        n.set(IN[i], 0);
      }
    }

    private void prune(State<Var> n) {
      Set<String> unneeded = new HashSet<>(unneeded(n));
      for (int i = 0; i < IN.length; i++) {
        int kek = i + 1;
        boolean used = List.of(n.get(Var.KEYS1), n.get(Var.KEYS2)).contains(kek);
        boolean old = n.get(Var.TIME) - (n.get(MADE[i]) - 1) > 2;
        boolean goes =
            defect == Defect.PRUNES_WHAT_IS_UNUSED
                || defect == Defect.COUNTS_FROM_ITS_OWN_AGE && old;
        if (unneeded.contains("kek" + i) || goes && !used && kek < newest(n)) {
          n.set(IN[i], 0);
        }
      }

      for (int i = 0; i < KEYS.length; i++) {
        boolean older = defect == Defect.LOOKS_AT_THE_CURRENT_SNAPSHOT && i == 0 && n.has(LISTS[1]);
        n.set(KEYS[i], unneeded.contains("list" + i) || older ? 0 : n.get(KEYS[i]));
      }
    }

    private Set<String> unneeded(State<Var> s) {
      List<Integer> asks = List.of(Var.values()).stream().map(s::get).toList();
      return asked.computeIfAbsent(asks, key -> KeyRetention.unneeded(metadata(s), at(s)));
    }

    private static long at(State<Var> s) {
      return at(s.get(Var.TIME));
    }

    private static long at(int time) {
      return BEGIN + Duration.ofDays(15L * time).toMillis();
    }

    private static TableMetadata metadata(State<Var> s) {
      TableMetadata.Builder builder =
          TableMetadata.buildFrom(
              TestLake.metadata("/t", Map.of("format-version", "3", "encryption.key-id", "k1")));
      for (int i = 0; i < IN.length; i++) {
        if (s.has(IN[i])) {
          String made = String.valueOf(at(s.get(MADE[i]) - 1));
          builder.addEncryptionKey(key("kek" + i, "k1", Map.of(Kek.TIMESTAMP, made)));
        }
      }

      for (int i = 0; i < LISTS.length; i++) {
        if (s.has(KEYS[i])) {
          builder.addEncryptionKey(key("list" + i, "kek" + (s.get(KEYS[i]) - 1), Map.of()));
        }

        if (s.has(LISTS[i])) {
          builder.addSnapshot(SnapshotParser.fromJson(snapshot(i)));
        }
      }

      return builder.build();
    }

    private static String snapshot(int i) {
      return String.format(
          "{\"snapshot-id\":%d,\"sequence-number\":%d,\"timestamp-ms\":%d,\"manifest-list\":\"/l%d\","
              + "\"summary\":{\"operation\":\"append\"},\"first-row-id\":0,\"added-rows\":0,"
              + "\"key-id\":\"list%d\"}",
          i + 1, i + 1, System.currentTimeMillis(), i, i);
    }

    private static EncryptedKey key(String id, String by, Map<String, String> properties) {
      return new BaseEncryptedKey(id, ByteBuffer.wrap(new byte[16]), by, properties);
    }

    @Override
    public String broken(State<Var> s) {
      for (int i = 0; i < LISTS.length; i++) {
        if (s.has(LISTS[i]) && !s.has(KEYS[i])) {
          return "the table lacks the key of a snapshot";
        }

        if (s.has(LISTS[i]) && !s.has(IN[s.get(KEYS[i]) - 1])) {
          return "the table lacks the KEK of a snapshot's key";
        }
      }

      return s.has(IN[newest(s) - 1]) ? null : "the newest KEK is gone";
    }
  }

  private static Explorer explore(Defect defect) {
    int time = LakeFixture.NIGHTLY ? 8 : 4;
    return Explorer.explore(new Pruning(defect, time, new HashMap<>()), Var.class);
  }

  @Test
  void noKeyGoesThatIsNeeded() {
    Explorer all = explore(Defect.NONE);
    all.requireSound("pruning of keys");
  }

  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "NONE")
  void aPlantedDefectIsFound(Defect defect) {
    explore(defect).requireBroken("pruning of keys, " + defect, "the table lacks the ");
  }
}
