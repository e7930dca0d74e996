package io.icebergcrypto.spark.rewrite;

import io.icebergcrypto.models.Explorer;
import io.icebergcrypto.models.Model;
import io.icebergcrypto.models.State;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.Stub;
import java.util.stream.Stream;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileContent;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * reencrypt_table beside a compaction and a writer that upserts one row: TableReencryption, {@link
 * DanglingDeletes}, whose rule is called here, and {@link DeleteGuard}. Both rewrites keep the
 * sequence number of their beginning for the data that they write. The row is in one data file, and
 * in one more for each upsert, which an equality delete precedes in the same commit.
 */
class DeletesModelTest {
  private enum Defect {
    NONE,
    /** A delete goes that was added before, with the earlier files. */
    GOES_BY_WHEN_FILES_WERE_ADDED,
    LOOKS_AT_THE_NEWEST_DATA,
    /** Iceberg's: a rewrite of all data drops deletes, without a look at what it adds. */
    DROPS_DELETES_WITH_ALL_DATA
  }

  private enum Var {
    SEQUENCE, // of the last commit
    START, // when reencrypt began, and one more
    DATA1, // the data sequence number of a data file, and one more; 0: not live
    DATA2, // written by the compaction
    DATA3, // written by reencrypt
    DATA4, // of upserts
    DATA5,
    HAS1, // whether that file has the row
    HAS2,
    HAS3,
    HAS4,
    HAS5,
    DELETE1, // the sequence number of an equality delete; 0: not live
    DELETE2,
    UPSERTS,
    DROPPED, // the last upsert has no rows: the row is deleted
    COMPACTION, // steps
    READ2,
    OF2, // whether what it has read had the row
    REENCRYPTION,
    READ3,
    OF3,
    FOUND1, // to be removed
    FOUND2,
    FAULTS
  }

  private static final Var[] DATA = {Var.DATA1, Var.DATA2, Var.DATA3, Var.DATA4, Var.DATA5};
  private static final Var[] HAS = {Var.HAS1, Var.HAS2, Var.HAS3, Var.HAS4, Var.HAS5};
  private static final Var[] DELETES = {Var.DELETE1, Var.DELETE2};
  private static final Var[] FOUND = {Var.FOUND1, Var.FOUND2};

  private record Rewrites(Defect defect, int faults) implements Model<Var> {
    @Override
    public State<Var> initial() {
      return State.initial(Var.class).set(Var.SEQUENCE, 1).set(Var.DATA1, 2).set(Var.HAS1, 1);
    }

    @Override
    public void steps(State<Var> s, Steps<Var> steps) {
      writer(s, steps);
      compaction(s, steps);
      reencryption(s, steps);
    }

    private void writer(State<Var> s, Steps<Var> steps) {
      int upserts = s.get(Var.UPSERTS);
      if (upserts < DELETES.length) {
        steps.step("the writer deletes the row", n -> writes(n, upserts, false));
        steps.step("the writer upserts the row", n -> writes(n, upserts, true));
      }
    }

    private static void writes(State<Var> n, int upserts, boolean row) {
      n.add(Var.SEQUENCE, 1).add(Var.UPSERTS, 1).set(Var.DROPPED, row ? 0 : 1);
      n.set(DELETES[upserts], n.get(Var.SEQUENCE));
      if (row) {
        n.set(DATA[3 + upserts], n.get(Var.SEQUENCE) + 1).set(HAS[3 + upserts], 1);
      }
    }

    private void compaction(State<Var> s, Steps<Var> steps) {
      switch (s.get(Var.COMPACTION)) {
        case 0 -> {
          if (s.has(Var.DATA1)) {
            steps.step(
                "the compaction begins, and reads",
                n -> {
                  n.set(Var.READ2, n.get(Var.SEQUENCE)).set(Var.COMPACTION, 1);
                  n.set(Var.OF2, isVisible(n, 0) ? 1 : 0);
                });
          }
        }
        case 1 -> {
          boolean there = s.has(Var.DATA1); // validated: what it replaces is still there
          steps.step(
              there ? "the compaction commits" : "the compaction conflicts",
              n -> {
                n.set(Var.COMPACTION, 2);
                if (there) {
                  n.add(Var.SEQUENCE, 1).set(Var.DATA1, 0);
                  n.set(Var.DATA2, n.get(Var.READ2) + 1).set(Var.HAS2, n.get(Var.OF2));
                }
              });
        }
        default -> {}
      }
    }

    private void reencryption(State<Var> s, Steps<Var> steps) {
      int first = s.has(Var.DATA1) ? 0 : 1; // the original, or what the compaction made of it
      boolean kills = s.get(Var.FAULTS) < faults && s.has(Var.REENCRYPTION);
      if (kills && s.get(Var.REENCRYPTION) < 5) {
        steps.step(
            "reencrypt is killed, and called again",
            n -> n.set(Var.REENCRYPTION, 0).add(Var.FAULTS, 1));
      }

      switch (s.get(Var.REENCRYPTION)) {
        case 0 ->
            steps.step(
                "reencrypt begins, and reads",
                n -> {
                  int data = n.has(DATA[first]) ? first : 2;
                  n.set(Var.START, n.get(Var.SEQUENCE) + 1).set(Var.REENCRYPTION, 1);
                  n.set(Var.READ3, data + 1).set(Var.OF3, isVisible(n, data) ? 1 : 0);
                });
        case 1 -> commitRewrite(s, steps);
        case 2 ->
            steps.step(
                "DanglingDeletes.find",
                n -> {
                  for (int i = 0; i < DELETES.length; i++) {
                    n.set(FOUND[i], isDangling(n, i) ? 1 : 0);
                  }

                  n.set(Var.REENCRYPTION, 3);
                });
        case 3 -> removeFound(s, steps);
        default -> {}
      }
    }

    private void commitRewrite(State<Var> s, Steps<Var> steps) {
      int read = s.get(Var.READ3) - 1;
      boolean there = s.has(DATA[read]);
      boolean alone = there && !s.has(Var.DATA4) && !s.has(Var.DATA5);
      steps.step(
          there ? "reencrypt commits what it has rewritten" : "reencrypt conflicts",
          n -> {
            if (!there) {
              n.set(Var.REENCRYPTION, 2); // with partial progress it continues nevertheless
              return;
            }

            n.add(Var.SEQUENCE, 1).set(DATA[read], 0).set(HAS[read], 0);
            n.set(Var.DATA3, n.get(Var.START)).set(Var.HAS3, n.get(Var.OF3));
            n.set(Var.REENCRYPTION, 2);
            if (alone && defect == Defect.DROPS_DELETES_WITH_ALL_DATA) {
              n.set(Var.DELETE1, 0).set(Var.DELETE2, 0);
            }
          });
    }

    private boolean isDangling(State<Var> s, int delete) {
      int number = s.get(DELETES[delete]);
      if (number == 0) {
        return false;
      }

      int start = s.get(Var.START) - 1;
      if (defect == Defect.LOOKS_AT_THE_NEWEST_DATA) {
        return number <= start && newest(s) >= number;
      }

      return defect == Defect.GOES_BY_WHEN_FILES_WERE_ADDED
          ? number <= start || s.has(Var.DATA3)
          : number <= start && !DanglingDeletes.mayApply(equalityDelete(number), oldest(s));
    }

    /** DeleteGuard.check, on the snapshot that is committed. */
    private void removeFound(State<Var> s, Steps<Var> steps) {
      boolean checked = defect == Defect.NONE;
      boolean refused = false;
      for (int i = 0; i < DELETES.length; i++) {
        int number = s.get(DELETES[i]);
        refused |=
            checked
                && s.has(FOUND[i])
                && DanglingDeletes.mayApply(equalityDelete(number), oldest(s));
      }

      boolean again = refused;
      steps.step(
          again ? "DeleteGuard refuses: a delete applies again" : "reencrypt removes what it found",
          n -> {
            n.set(Var.REENCRYPTION, again ? 2 : 5);
            for (int i = 0; i < DELETES.length; i++) {
              n.set(DELETES[i], n.has(FOUND[i]) && !again ? 0 : n.get(DELETES[i]));
              n.set(FOUND[i], 0);
            }
          });
    }

    @Override
    public String broken(State<Var> s) {
      int visible = 0;
      for (int i = 0; i < DATA.length; i++) {
        visible += isVisible(s, i) ? 1 : 0;
      }

      if (visible > 1 || visible == 1 && s.has(Var.DROPPED)) {
        return "a deleted row came back";
      }

      return visible == 0 && !s.has(Var.DROPPED) ? "a row is lost" : null;
    }

    private static boolean isVisible(State<Var> s, int data) {
      if (!s.has(DATA[data]) || !s.has(HAS[data])) {
        return false;
      }

      int number = s.get(DATA[data]) - 1;
      return number >= Math.max(s.get(Var.DELETE1), s.get(Var.DELETE2));
    }

    private static long newest(State<Var> s) {
      return Stream.of(DATA).mapToLong(data -> s.get(data) - 1).max().orElseThrow();
    }

    private static long oldest(State<Var> s) {
      long oldest = Long.MAX_VALUE;
      for (Var data : DATA) {
        oldest = s.has(data) ? Math.min(oldest, s.get(data) - 1) : oldest;
      }

      return oldest;
    }
  }

  private static DeleteFile equalityDelete(long number) {
    return Stub.of(
        DeleteFile.class,
        (proxy, method, arguments) ->
            switch (method.getName()) {
              case "content" -> FileContent.EQUALITY_DELETES;
              case "dataSequenceNumber" -> number;
              default -> throw new UnsupportedOperationException(method.getName());
            });
  }

  private static Explorer explore(Defect defect) {
    return Explorer.explore(new Rewrites(defect, LakeFixture.NIGHTLY ? 3 : 1), Var.class);
  }

  @Test
  void noRowComesBack() {
    explore(Defect.NONE).requireSound("deletes of reencrypt_table");
  }

  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "NONE")
  void aPlantedDefectIsFound(Defect defect) {
    explore(defect).requireBroken("reencrypt_table, " + defect, "a deleted row came back");
  }
}
