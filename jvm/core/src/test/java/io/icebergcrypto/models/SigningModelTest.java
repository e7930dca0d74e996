package io.icebergcrypto.models;

import io.icebergcrypto.testing.LakeFixture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Signed metadata on catalogs that keep a pointer to it (JDBC, Hadoop, Glue, Nessie):
 * EncryptedTableOperations.commit, MetadataAuthenticator.sign and MetadataCheck, below Iceberg's
 * own loop of attempts (SnapshotProducer). Two writers append, and an operator gives the table a
 * new KEK; what a reader finds is checked in every state.
 */
class SigningModelTest {
  private enum Defect {
    NONE,
    /** The answer to a commit is lost, and its files are deleted. */
    DELETES_WHEN_UNKNOWN,
    /** A client below tries again, meets its own commit, and the files are deleted. */
    DELETES_AFTER_OWN_COMMIT,
    SIGNS_FOR_THE_FIRST_BASE,
    SIGNS_WITH_THE_FIRST_KEK,
    /** The catalog moves its pointer regardless of what it was. */
    OVERWRITES
  }

  private enum Var {
    VERSION, // of the metadata in force
    KEK, // its newest
    MAC_VERSION,
    MAC_KEK,
    ROWS1, // whether it has the snapshot of a writer
    ROWS2,
    ROWS3, // or the operator's KEK
    MADE1, // whether the catalog has ever committed that
    MADE2,
    MADE3,
    FAULTS,
    PC1,
    PC2,
    PC3,
    BASE1,
    BASE2,
    BASE3,
    KEKS1, // the KEK of the base
    KEKS2,
    KEKS3,
    FIRST1, // the base of the first attempt, and one more
    FIRST2,
    FIRST3,
    FIRSTKEK1,
    FIRSTKEK2,
    FIRSTKEK3,
    FILES1,
    FILES2,
    FILES3
  }

  private enum Pc {
    WRITE,
    REFRESH,
    COMMIT,
    CLEAN,
    DONE,
    UNKNOWN,
    FAILED,
    DEAD
  }

  private static final int OPERATOR = 3;

  private record Signing(Defect defect, int faults) implements Model<Var> {
    @Override
    public State<Var> initial() {
      return State.initial(Var.class).set(Var.KEK, 1).set(Var.MAC_KEK, 1);
    }

    @Override
    public void steps(State<Var> s, Steps<Var> steps) {
      for (int actor = 1; actor <= OPERATOR; actor++) {
        new Committer(this, s, steps, actor).take();
      }
    }

    @Override
    public String broken(State<Var> s) {
      if (s.get(Var.MAC_VERSION) != s.get(Var.VERSION)) {
        return "metadata of an honest client is refused: its MAC is of another version";
      }

      if (s.get(Var.MAC_KEK) != s.get(Var.KEK)) {
        return "metadata of an honest client is refused: its MAC was made with a replaced KEK";
      }

      for (int actor = 1; actor <= OPERATOR; actor++) {
        if (s.has(Actor.of(Var.MADE1, actor)) && !s.has(Actor.of(Var.ROWS1, actor))) {
          return "a commit is lost that was made";
        }

        if (s.has(Actor.of(Var.ROWS1, actor)) && !s.has(Actor.of(Var.FILES1, actor))) {
          return "files of a commit that was made are deleted";
        }
      }

      return null;
    }

    @Override
    public String brokenAtTheEnd(State<Var> s) {
      for (int actor = 1; actor <= OPERATOR; actor++) {
        boolean made = s.has(Actor.of(Var.MADE1, actor));
        if (s.is(Actor.of(Var.PC1, actor), Pc.DONE) && !made) {
          return "an actor says that it has committed";
        }

        if (s.is(Actor.of(Var.PC1, actor), Pc.FAILED) && made) {
          return "an actor says that nothing was committed";
        }
      }

      return null;
    }
  }

  /** What one of them may do next. */
  private static final class Committer extends Actor<Var, Pc> {
    private Committer(Signing model, State<Var> s, Model.Steps<Var> steps, int number) {
      super(
          s, steps, number, new Common<>(Var.PC1, Pc.DONE, Var.FAULTS, model.faults, model.defect));
    }

    @Override
    protected String called() {
      return number == OPERATOR ? "the operator" : "writer " + number;
    }

    private void take() {
      mayBeKilled(Pc.DEAD);
      switch (pc()) {
        case WRITE -> step("writes its files", Pc.REFRESH, n -> n.set(var(Var.FILES1), 1));
        case REFRESH -> refresh();
        case COMMIT -> commit();
        case CLEAN -> step("deletes its files", Pc.FAILED, n -> n.set(var(Var.FILES1), 0));
        default -> {}
      }
    }

    /** LoadedMetadata.refresh; an attempt that finds its own snapshot has nothing to commit. */
    private void refresh() {
      if (s.has(var(Var.ROWS1))) {
        boolean deletes = plants(Defect.DELETES_AFTER_OWN_COMMIT);
        step("finds its own commit", deletes ? Pc.CLEAN : Pc.DONE);
        return;
      }

      step(
          "refreshes, and prepares metadata (CommitSteps)",
          Pc.COMMIT,
          n -> {
            n.set(var(Var.BASE1), n.get(Var.VERSION)).set(var(Var.KEKS1), n.get(Var.KEK));
            if (!n.has(var(Var.FIRST1))) {
              n.set(var(Var.FIRST1), n.get(Var.VERSION) + 1)
                  .set(var(Var.FIRSTKEK1), n.get(Var.KEK));
            }
          });
      fault("cannot refresh", s.has(var(Var.FIRST1)) ? Pc.UNKNOWN : Pc.CLEAN);
      if (s.get(Var.VERSION) > 0) {
        fault(
            "refreshes from a replica that lags",
            Pc.COMMIT,
            n -> {
              n.set(var(Var.BASE1), 0).set(var(Var.KEKS1), 1);
              if (!n.has(var(Var.FIRST1))) {
                n.set(var(Var.FIRST1), 1).set(var(Var.FIRSTKEK1), 1);
              }
            });
      }
    }

    private void commits(State<Var> n) {
      int base = n.get(var(Var.BASE1));
      boolean firstKek = plants(Defect.SIGNS_WITH_THE_FIRST_KEK);
      int newest = n.get(var(Var.KEKS1)) + (number == OPERATOR ? 1 : 0);
      if (base != n.get(Var.VERSION)) { // what came between is not in it
        n.set(Var.ROWS1, 0).set(Var.ROWS2, 0).set(Var.ROWS3, 0);
      }

      n.set(Var.KEK, newest)
          .set(Var.MAC_KEK, firstKek && number != OPERATOR ? n.get(var(Var.FIRSTKEK1)) : newest)
          .set(Var.VERSION, base + 1)
          .set(
              Var.MAC_VERSION,
              plants(Defect.SIGNS_FOR_THE_FIRST_BASE) ? n.get(var(Var.FIRST1)) : base + 1)
          .set(var(Var.ROWS1), 1)
          .set(var(Var.MADE1), 1);
    }

    private void commit() {
      Pc unknown = plants(Defect.DELETES_WHEN_UNKNOWN) ? Pc.CLEAN : Pc.UNKNOWN;
      if (s.get(Var.VERSION) == s.get(var(Var.BASE1)) || plants(Defect.OVERWRITES)) {
        step("the catalog moves its pointer", Pc.DONE, this::commits);
        fault("the catalog moves its pointer, and the answer is lost", unknown, this::commits);
        fault(
            "the catalog moves its pointer; its client tries again, a conflict",
            Pc.REFRESH,
            this::commits);
      } else {
        step("the catalog says: a conflict", Pc.REFRESH);
      }

      fault("the commit is lost on its way", unknown);
      fault("the KMS fails before the commit", refused());
    }

    /** Iceberg deletes what is new after an error that is not a CommitStateUnknownException. */
    private Pc refused() {
      return s.has(var(Var.ROWS1)) ? Pc.UNKNOWN : Pc.CLEAN;
    }
  }

  private static Explorer explore(Defect defect) {
    return Explorer.explore(new Signing(defect, LakeFixture.NIGHTLY ? 4 : 2), Var.class);
  }

  @Test
  void noHonestMetadataIsRefusedAndNoFileOfItDeleted() {
    explore(Defect.NONE).requireSound("signed metadata");
  }

  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "NONE")
  void aPlantedDefectIsFound(Defect defect) {
    String wrong =
        switch (defect) {
          case SIGNS_FOR_THE_FIRST_BASE -> "of another version";
          case SIGNS_WITH_THE_FIRST_KEK -> "a replaced KEK";
          case OVERWRITES -> "is lost";
          default -> "are deleted";
        };
    explore(defect).requireBroken("signed metadata, " + defect, wrong);
  }
}
