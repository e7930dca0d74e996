package io.icebergcrypto.models;

import io.icebergcrypto.testing.LakeFixture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * The switch of encrypt_table: TableEncryption.round, KeyIdChange.commit and CopyLog. Three calls
 * take part: two of an operator, the second after the first has ended or was killed, and one of
 * another operator at any time; beside them a writer commits to the plaintext table.
 */
class SwitchModelTest {
  private enum Defect {
    NONE,
    /** The commit's answer is lost, and what it wrote is deleted. */
    DISCARDS_WHEN_UNKNOWN,
    /** A client's second attempt meets its own commit: that is taken for another client's. */
    DISCARDS_OWN_COMMIT,
    /** After the commit, a server's answer from before it says that it was not made. */
    BELIEVES_AN_OLD_ANSWER,
    COMMITS_ON_WHAT_IT_FINDS,
    WRITES_KEPT_METADATA_LAST,
    TIDIES_UP_WHAT_IS_USED,
    GOES_ON_WHEN_CANCELLED
  }

  private enum Var {
    VERSION, // commits of the writer
    TABLE, // 0: plaintext, otherwise the call whose tree is in force
    ROWS, // the version that this tree has
    LOG, // the newest version that is copied and proved, and in the log
    FAULTS,
    LAGS, // the server shows the earlier metadata
    PC1,
    PC2,
    PC3,
    BASE1,
    BASE2,
    BASE3,
    META1,
    META2,
    META3,
    LISTS1,
    LISTS2,
    LISTS3,
    MANIFESTS1,
    MANIFESTS2,
    MANIFESTS3,
    KEEP1,
    KEEP2,
    KEEP3,
    AGAIN1,
    AGAIN2,
    AGAIN3,
    CANCELLED1,
    CANCELLED2,
    CANCELLED3
  }

  private enum Pc {
    IDLE,
    ROUND,
    COPY,
    MAKE,
    CHECK,
    KEEP,
    LOAD,
    COMMIT,
    CONFLICT,
    ERROR,
    KEEP_LATE,
    AFTER,
    DISCARD_META,
    DISCARD_LISTS,
    TIDY,
    DONE,
    FAILED,
    DEAD
  }

  private record Switch(Defect defect, int faults, int commits) implements Model<Var> {
    @Override
    public State<Var> initial() {
      return State.initial(Var.class);
    }

    @Override
    public void steps(State<Var> s, Steps<Var> steps) {
      if (!s.has(Var.TABLE) && s.get(Var.VERSION) < commits) {
        steps.step("the writer commits", n -> n.add(Var.VERSION, 1));
      }

      if (s.has(Var.LAGS)) {
        steps.step("the server shows the newest metadata again", n -> n.set(Var.LAGS, 0));
      }

      for (int call = 1; call <= 3; call++) {
        new Call(this, s, steps, call).take();
      }
    }

    @Override
    public String broken(State<Var> s) {
      int inForce = s.get(Var.TABLE);
      if (inForce == 0) {
        return null;
      }

      if (!s.has(Actor.of(Var.LISTS1, inForce)) || !s.has(Actor.of(Var.MANIFESTS1, inForce))) {
        return "the table is encrypted, and files of its tree are deleted";
      }

      boolean isLate = s.is(Actor.of(Var.PC1, inForce), Pc.KEEP_LATE);
      if (!s.has(Actor.of(Var.META1, inForce)) && !isLate) {
        return "nothing leads to the plaintext any more";
      }

      return s.get(Var.ROWS) == s.get(Var.VERSION) ? null : "a commit of the writer is lost";
    }

    @Override
    public String brokenAtTheEnd(State<Var> s) {
      for (int call = 1; call <= 3; call++) {
        boolean inForce = s.get(Var.TABLE) == call;
        if (s.is(Actor.of(Var.PC1, call), Pc.DONE) && !inForce) {
          return "call " + call + " says that it has encrypted the table";
        }

        if (s.has(Actor.of(Var.CANCELLED1, call)) && inForce) {
          return "call " + call + " was cancelled, and has encrypted the table";
        }

        boolean left = s.has(Actor.of(Var.META1, call)) || s.has(Actor.of(Var.LISTS1, call));
        if (left && !inForce && s.get(Var.FAULTS) == 0) {
          return "files of call " + call + " are left without a fault";
        }
      }

      return null;
    }
  }

  /** What one call may do next. */
  private static final class Call extends Actor<Var, Pc> {
    private Call(Switch model, State<Var> s, Model.Steps<Var> steps, int number) {
      super(
          s, steps, number, new Common<>(Var.PC1, Pc.DONE, Var.FAULTS, model.faults, model.defect));
    }

    private void take() {
      Pc pc = pc();
      if (pc != Pc.IDLE) {
        mayBeKilled(Pc.DEAD);
      }

      boolean inForce = !s.has(Var.TABLE) && s.get(Var.VERSION) == s.get(var(Var.BASE1));
      switch (pc) {
        case IDLE -> mayBegin(Pc.ROUND);
        case ROUND -> {
          step(
              "PlaintextTable.refreshed",
              s.has(Var.TABLE) ? Pc.TIDY : Pc.COPY,
              n -> n.set(var(Var.BASE1), n.get(Var.VERSION)).set(var(Var.AGAIN1), 0));
        }
        case COPY ->
            step(
                "copies, proves and logs what is missing (CopyLog.add)",
                Pc.MAKE,
                n -> n.set(Var.LOG, Math.max(n.get(Var.LOG), n.get(var(Var.BASE1)))));
        case MAKE -> {
          step(
              "CopyManifests.of, EncryptedSnapshots.make, prove",
              Pc.CHECK,
              n -> n.set(var(Var.LISTS1), 1).set(var(Var.MANIFESTS1), 1));
          fault("the proof fails", Pc.DISCARD_META, n -> n.set(var(Var.LISTS1), 1));
        }
        case CHECK -> {
          Pc then = plants(Defect.WRITES_KEPT_METADATA_LAST) ? Pc.LOAD : Pc.KEEP;
          boolean again = !s.has(Var.TABLE);
          step(
              inForce ? "isInForce: yes" : "isInForce: no",
              inForce ? then : Pc.DISCARD_META,
              n -> n.set(var(Var.AGAIN1), again && !inForce ? 1 : 0));
        }
        case KEEP -> {
          step("keeps the old metadata", Pc.LOAD, n -> n.set(var(Var.META1), 1));
          fault("the storage fails at the old metadata", Pc.DISCARD_META);
        }
        case LOAD -> load(inForce);
        case COMMIT -> commit(inForce);
        case CONFLICT -> conflict();
        case ERROR -> error(inForce);
        case KEEP_LATE -> step("keeps the old metadata", Pc.AFTER, n -> n.set(var(Var.META1), 1));
        case AFTER -> after();
        case DISCARD_META -> {
          step("discard deletes the old metadata", Pc.DISCARD_LISTS, n -> drop(n, Var.META1));
          fault("discard cannot delete it", Pc.DISCARD_LISTS);
        }
        case DISCARD_LISTS -> {
          Pc then = s.has(var(Var.AGAIN1)) ? Pc.ROUND : Pc.TIDY;
          step("discard deletes the manifest lists", then, n -> drop(n, Var.LISTS1));
          fault("discard cannot delete them", then);
        }
        case TIDY -> tidy();
        default -> {}
      }
    }

    private void drop(State<Var> n, Var file) {
      n.set(var(file), 0);
    }

    private void load(boolean inForce) {
      if (s.has(var(Var.CANCELLED1)) && !plants(Defect.GOES_ON_WHEN_CANCELLED)) {
        step("CancelledException.check ends it", Pc.DISCARD_META);
        return;
      }

      boolean goes = inForce || plants(Defect.COMMITS_ON_WHAT_IT_FINDS) && !s.has(Var.TABLE);
      step(
          goes ? "KeyIdChange: the base is in force" : "KeyIdChange: CommitFailedException",
          goes ? Pc.COMMIT : Pc.DISCARD_META,
          n -> n.set(var(Var.AGAIN1), goes || s.has(Var.TABLE) ? 0 : 1));
      if (!s.has(var(Var.CANCELLED1))) {
        fault("is cancelled", Pc.LOAD, n -> n.set(var(Var.CANCELLED1), 1));
      }
    }

    private void switches(State<Var> n) {
      n.set(Var.TABLE, number).set(Var.ROWS, n.get(var(Var.BASE1)));
    }

    private void commit(boolean inForce) {
      Pc unknown = plants(Defect.DISCARDS_WHEN_UNKNOWN) ? Pc.DISCARD_META : Pc.TIDY;
      if (inForce || plants(Defect.COMMITS_ON_WHAT_IT_FINDS) && !s.has(Var.TABLE)) {
        Pc then = plants(Defect.WRITES_KEPT_METADATA_LAST) ? Pc.KEEP_LATE : Pc.AFTER;
        step("the catalog commits", then, this::switches);
        fault(
            "the catalog commits, and the answer is lost",
            unknown,
            n -> {
              switches(n);
              n.set(var(Var.KEEP1), 1);
            });
        fault(
            "the catalog commits; its client tries again, a conflict", Pc.CONFLICT, this::switches);
        fault("the catalog commits, and shows the earlier metadata", then, this::lags);
      } else {
        step("the catalog says: a conflict", Pc.CONFLICT);
      }

      fault("the commit is lost on its way", unknown, n -> n.set(var(Var.KEEP1), 1));
      fault("the commit is refused (IcebergCryptoException)", Pc.ERROR);
    }

    private void lags(State<Var> n) {
      switches(n);
      n.set(Var.LAGS, 1);
    }

    /** CommitOutcome looks whose commit it was. */
    private void conflict() {
      boolean own = s.get(Var.TABLE) == number && !plants(Defect.DISCARDS_OWN_COMMIT);
      boolean again = !s.has(Var.TABLE);
      step(
          own ? "it is its own commit" : "it is another's commit",
          own ? Pc.AFTER : Pc.DISCARD_META,
          n -> n.set(var(Var.AGAIN1), again ? 1 : 0));
      if (!plants(Defect.DISCARDS_OWN_COMMIT)) {
        fault("whose commit it is cannot be told", Pc.TIDY, n -> n.set(var(Var.KEEP1), 1));
      }
    }

    /** Before the commit: what was written is deleted if the base is still in force. */
    private void error(boolean inForce) {
      boolean unchanged = inForce || s.has(Var.LAGS);
      step(
          unchanged ? "the base is still in force" : "other metadata is in force",
          unchanged ? Pc.DISCARD_META : Pc.TIDY,
          n -> n.set(var(Var.KEEP1), unchanged ? 0 : 1));
    }

    private void after() {
      step("KeyIdChange.requireEncrypted, CopyLog.delete", Pc.TIDY, n -> keptAndLogGone(n));
      boolean believes = plants(Defect.BELIEVES_AN_OLD_ANSWER) && s.has(Var.LAGS);
      fault(
          "KeyIdChange.requireEncrypted fails",
          believes ? Pc.DISCARD_META : Pc.TIDY,
          n -> n.set(var(Var.KEEP1), 1));
    }

    private void keptAndLogGone(State<Var> n) {
      n.set(var(Var.KEEP1), 1).set(Var.LOG, 0);
    }

    private void tidy() {
      boolean keeps = s.has(var(Var.KEEP1)) && !plants(Defect.TIDIES_UP_WHAT_IS_USED);
      Pc then = s.get(Var.TABLE) == number ? Pc.DONE : Pc.FAILED;
      step(
          keeps ? "tidyUp" : "tidyUp deletes unused manifests",
          then,
          n -> n.set(var(Var.MANIFESTS1), keeps ? n.get(var(Var.MANIFESTS1)) : 0));
    }
  }

  private static Explorer explore(Defect defect) {
    int faults = LakeFixture.NIGHTLY ? 3 : 2;
    return Explorer.explore(new Switch(defect, faults, 2), Var.class);
  }

  @Test
  void theSwitchLosesNothing() {
    explore(Defect.NONE).requireSound("encrypt_table");
  }

  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "NONE")
  void aPlantedDefectIsFound(Defect defect) {
    String wrong =
        switch (defect) {
          case COMMITS_ON_WHAT_IT_FINDS -> "is lost";
          case TIDIES_UP_WHAT_IS_USED -> "files of its tree are deleted";
          case GOES_ON_WHEN_CANCELLED -> "was cancelled, and has encrypted";
          default -> "nothing leads to the plaintext"; // the kept metadata is deleted first
        };
    explore(defect).requireBroken("encrypt_table, " + defect, wrong);
  }
}
