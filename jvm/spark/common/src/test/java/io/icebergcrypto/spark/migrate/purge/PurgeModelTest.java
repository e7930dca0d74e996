package io.icebergcrypto.spark.migrate.purge;

import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.models.Actor;
import io.icebergcrypto.models.Explorer;
import io.icebergcrypto.models.Model;
import io.icebergcrypto.models.State;
import io.icebergcrypto.testing.LakeFixture;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * purge_plaintext: PlaintextPurge with its {@link Phase}s, which are called here, PurgeRecord and
 * Proof. Three calls take part: two of an operator, the second after the first has ended or was
 * killed, and one of another operator at any time. The old tree has the kept metadata, a list, a
 * manifest, and two data files: one in the table's folders, one in a folder that the user named,
 * where no proof looks. Until the purge has recorded that it begins, an operator may undo the
 * encryption: the old files are the table's then.
 */
class PurgeModelTest {
  private enum Defect {
    NONE,
    /** Data, manifests, lists and metadata go in one pass. */
    DELETES_IN_ANY_ORDER,
    FORGETS_BEFORE_THE_PROOF,
    TAKES_FAILURES_FOR_DELETED,
    /** What a storage says that it has deleted is not looked for. */
    BELIEVES_THE_STORAGE,
    TAKES_MISSING_FOR_NOTHING,
    RECORDS_NO_STEP,
    TAKES_ANOTHER_CALL_FOR_LOSS,
    /** What it has read before is enough. */
    DELETES_BEFORE_A_RECORD
  }

  private enum Var {
    LOST, // the manifest, before the purge began
    STRAY, // plaintext in the table's folders that nothing names
    KEPT,
    LIST,
    MANIFEST,
    DATA,
    ELSEWHERE, // a data file
    BEGUN, // the table's property: a phase
    RECORDED, // the table has that property
    UNDONE, // the old metadata is the table's
    ROBBED, // an old file was deleted after that
    FORGOTTEN, // the table's property that leads to the old metadata is gone
    FAULTS,
    PC1,
    PC2,
    PC3,
    SEEN1,
    SEEN2,
    SEEN3,
    LISTED1, // what it has read names the list
    LISTED2,
    LISTED3,
    NAMED1, // ... the manifest
    NAMED2,
    NAMED3,
    KNOWN1, // ... the data files
    KNOWN2,
    KNOWN3,
    GAP1,
    GAP2,
    GAP3,
    FAULTY1,
    FAULTY2,
    FAULTY3
  }

  private enum Pc {
    IDLE,
    LOAD,
    READ_KEPT,
    READ_LIST,
    READ_MANIFEST,
    DECIDE,
    BEGIN_DATA,
    DELETE_DATA,
    DELETE_ELSEWHERE,
    PROVE_OTHERS,
    BEGIN_MANIFESTS,
    DELETE_MANIFEST,
    BEGIN_LISTS,
    DELETE_LIST,
    SHORTEN_LOG,
    PROVE_ALL,
    DELETE_KEPT,
    FORGET,
    DONE,
    REFUSED, // it was purged before, or undone
    FAILED,
    DEAD;

    private Pc next() {
      return values()[ordinal() + 1];
    }
  }

  private record Purge(Defect defect, int faults) implements Model<Var> {
    @Override
    public State<Var> initial() {
      return State.initial(Var.class)
          .set(Var.KEPT, 1)
          .set(Var.LIST, 1)
          .set(Var.MANIFEST, 1)
          .set(Var.DATA, 1)
          .set(Var.ELSEWHERE, 1);
    }

    @Override
    public void steps(State<Var> s, Steps<Var> steps) {
      boolean begun = s.has(Var.PC1) || s.has(Var.PC3);
      if (!begun && !s.has(Var.LOST)) {
        steps.step("the manifest was lost", n -> n.set(Var.LOST, 1).set(Var.MANIFEST, 0));
      }

      if (!begun && !s.has(Var.STRAY)) {
        steps.step("a failed write has left plaintext", n -> n.set(Var.STRAY, 1));
      }

      if (!begun && s.has(Var.DATA)) {
        steps.step("all data is in the folder that the user named", n -> n.set(Var.DATA, 0));
      }

      if (!s.has(Var.RECORDED) && !s.has(Var.UNDONE) && !s.has(Var.FORGOTTEN)) {
        steps.step("an operator registers the old metadata", n -> n.set(Var.UNDONE, 1));
      }

      for (int call = 1; call <= 3; call++) {
        new Call(this, s, steps, call).take();
      }
    }

    @Override
    public String broken(State<Var> s) {
      if (s.has(Var.UNDONE)) {
        return s.has(Var.ROBBED) ? "it has deleted files of a plaintext table" : null;
      }

      boolean data = s.has(Var.DATA) || s.has(Var.ELSEWHERE);
      boolean any = data || s.has(Var.MANIFEST) || s.has(Var.LIST) || s.has(Var.KEPT);
      if (s.has(Var.FORGOTTEN) && (any || s.has(Var.STRAY))) {
        return "the purge has forgotten plaintext that is left";
      }

      boolean lost = s.has(Var.LOST);
      boolean cut =
          data && !s.has(Var.MANIFEST) && !lost
              || (data || s.has(Var.MANIFEST)) && !s.has(Var.LIST)
              || any && !s.has(Var.KEPT);
      return cut ? "nothing names old files that are left" : stuck(s);
    }

    /** A call without a fault of its own, and nothing wrong with the table before it, ends. */
    private static String stuck(State<Var> s) {
      for (int call = 1; call <= 3; call++) {
        boolean failed = s.is(Actor.of(Var.PC1, call), Pc.FAILED);
        boolean fails = failed && !s.has(Actor.of(Var.FAULTY1, call));
        if (fails && !s.has(Var.LOST) && !s.has(Var.STRAY)) {
          return "call " + call + " cannot go on";
        }
      }

      return null;
    }

    @Override
    public String brokenAtTheEnd(State<Var> s) {
      for (int call = 1; call <= 3; call++) {
        if (s.is(Actor.of(Var.PC1, call), Pc.DONE) && !isOver(s)) {
          return "call " + call + " says that it is done";
        }
      }

      return null;
    }
  }

  /** Whether the table no longer leads to the old files. */
  private static boolean isOver(State<Var> s) {
    return s.has(Var.FORGOTTEN) || s.has(Var.UNDONE);
  }

  /** What one call may do next. */
  private static final class Call extends Actor<Var, Pc> {
    private Call(Purge model, State<Var> s, Model.Steps<Var> steps, int number) {
      super(
          s, steps, number, new Common<>(Var.PC1, Pc.DONE, Var.FAULTS, model.faults, model.defect));
    }

    @Override
    protected void blame(State<Var> n) {
      n.set(var(Var.FAULTY1), 1);
    }

    private Phase seen() {
      return Phase.values()[s.get(var(Var.SEEN1))];
    }

    private void take() {
      Pc pc = pc();
      if (pc != Pc.IDLE) {
        mayBeKilled(Pc.DEAD);
      }

      switch (pc) {
        case IDLE -> mayBegin(Pc.LOAD);
        case LOAD ->
            step(
                "loads the table",
                isOver(s) ? Pc.REFUSED : Pc.READ_KEPT,
                n -> forgetWhatItRead(n).set(var(Var.SEEN1), n.get(Var.BEGUN)));
        case READ_KEPT -> read(Var.KEPT, FileKind.METADATA_FILE, true, Var.LISTED1);
        case READ_LIST ->
            read(Var.LIST, FileKind.MANIFEST_LIST, s.has(var(Var.LISTED1)), Var.NAMED1);
        case READ_MANIFEST ->
            read(Var.MANIFEST, FileKind.MANIFEST, s.has(var(Var.NAMED1)), Var.KNOWN1);
        case DECIDE -> decide();
        case BEGIN_DATA -> beginData();
        case DELETE_DATA -> delete(Var.DATA, Var.KNOWN1);
        case DELETE_ELSEWHERE -> delete(Var.ELSEWHERE, Var.KNOWN1);
        case PROVE_OTHERS -> proveOthers();
        case BEGIN_MANIFESTS -> begin(Phase.MANIFESTS, Var.MANIFEST, Var.NAMED1);
        case DELETE_MANIFEST -> delete(Var.MANIFEST, Var.NAMED1);
        case BEGIN_LISTS -> begin(Phase.MANIFEST_LISTS, Var.LIST, Var.LISTED1);
        case DELETE_LIST -> delete(Var.LIST, Var.LISTED1);
        case SHORTEN_LOG -> record("PurgeRecord.shortenLog", Phase.METADATA_FILES, pc.next());
        case PROVE_ALL -> proveAll();
        case DELETE_KEPT -> deleteKept();
        case FORGET -> forget();
        default -> {}
      }
    }

    private State<Var> forgetWhatItRead(State<Var> n) {
      return n.set(var(Var.LISTED1), 0)
          .set(var(Var.NAMED1), 0)
          .set(var(Var.KNOWN1), 0)
          .set(var(Var.GAP1), 0);
    }

    private Pc next() {
      return pc().next();
    }

    /** OldMetadata and OldTree; OldFiles.gaps. */
    private void read(Var file, FileKind kind, boolean named, Var what) {
      boolean isGap =
          named
              && !s.has(file)
              && !Phase.mayMiss(kind, seen())
              && !plants(Defect.TAKES_MISSING_FOR_NOTHING)
              && !plants(Defect.DELETES_IN_ANY_ORDER);
      step(
          "reads the " + kind.label() + (named && !s.has(file) ? ", which is not there" : ""),
          next(),
          n ->
              n.set(var(what), named && n.has(file) ? 1 : 0)
                  .set(var(Var.GAP1), isGap ? 1 : n.get(var(Var.GAP1))));
      if (named) {
        fault("the storage does not give the " + kind.label(), Pc.FAILED);
      }
    }

    /** PlaintextPurge.isAnotherAhead and requireKnown. */
    private void decide() {
      Phase now = Phase.values()[s.get(Var.BEGUN)];
      boolean ahead =
          (isOver(s) || !now.isReached(seen())) && !plants(Defect.TAKES_ANOTHER_CALL_FOR_LOSS);
      if (!s.has(var(Var.GAP1))) {
        step("knows all old files", next());
      } else if (ahead) {
        step("another call is ahead: it begins again", Pc.LOAD);
      } else {
        step("refuses, as what named old files is missing", Pc.FAILED);
      }
    }

    private void delete(Var file, Var named) {
      if (plants(Defect.DELETES_IN_ANY_ORDER) && pc() == Pc.DELETE_DATA) {
        for (Var any : new Var[] {Var.LIST, Var.MANIFEST}) {
          if (s.has(any)) {
            step("deletes the " + any.name().toLowerCase(), Pc.DELETE_DATA, n -> n.set(any, 0));
          }
        }
      }

      if (s.has(var(named)) && s.has(file)) {
        deleteFile(file);
      } else {
        step("has nothing to delete (" + file.name().toLowerCase() + ")", next());
      }
    }

    private void deleteFile(Var file) {
      String name = file.name().toLowerCase();
      step(
          "ProvenDeletion: " + name,
          next(),
          n -> n.set(file, 0).set(Var.ROBBED, n.get(Var.UNDONE)));
      Pc then = plants(Defect.TAKES_FAILURES_FOR_DELETED) ? next() : Pc.FAILED;
      fault("ProvenDeletion cannot delete: " + name, then);
      if (pc() == Pc.DELETE_DATA && seen() == Phase.DATA) { // ProvenDeletion.beforeListing
        fault("the storage says that it has deleted, and has not: " + name, next());
      }
    }

    private void begin(Phase phase, Var file, Var named) {
      if (!s.has(var(named)) || !s.has(file)) {
        step("has nothing to begin (" + phase.label() + ")", next());
      } else if (plants(Defect.RECORDS_NO_STEP)) {
        step("begins without a record (" + phase.label() + ")", next());
      } else {
        record("PurgeRecord.begin: " + phase.label(), phase, next());
      }
    }

    private void beginData() {
      if (plants(Defect.DELETES_BEFORE_A_RECORD)) {
        step("begins without a record (data)", next());
      } else {
        record("PurgeRecord.begin: data", Phase.DATA, next());
      }
    }

    /** PurgeRecord.require; nothing but another call's forget can come between. */
    private void deleteKept() {
      if (isOver(s) && !plants(Defect.FORGETS_BEFORE_THE_PROOF)) {
        step("PurgeRecord.require refuses", Pc.REFUSED);
      } else {
        deleteFile(Var.KEPT);
      }
    }

    private void record(String name, Phase phase, Pc then) {
      if (isOver(s)) {
        step(name + " refuses", Pc.REFUSED);
        return;
      }

      Consumer<State<Var>> commit =
          n -> {
            n.set(Var.RECORDED, 1);
            if (!phase.isReached(Phase.values()[n.get(Var.BEGUN)])) {
              n.set(Var.BEGUN, phase);
            }
          };
      step(name, then, commit);
      fault(name + ", and the answer is lost", Pc.FAILED, commit);
      fault(name + " fails", Pc.FAILED);
    }

    /** Proof.ofOthers: old data in the table's folders, and what is plaintext and not known. */
    private void proveOthers() {
      if (seen() != Phase.DATA) {
        step("was past that proof", next());
      } else if (s.has(Var.DATA)
          && s.has(var(Var.KNOWN1))
          && !plants(Defect.BELIEVES_THE_STORAGE)) {
        step("Proof.ofOthers finds data, and deletes it", pc(), n -> n.set(Var.DATA, 0));
        fault("Proof.ofOthers finds data, and cannot delete it", Pc.FAILED);
      } else {
        boolean others = s.has(Var.STRAY) || s.has(Var.DATA) && !s.has(var(Var.KNOWN1));
        step(
            others ? "Proof.ofOthers finds plaintext" : "Proof.ofOthers",
            others ? Pc.FAILED : next());
        fault("Proof.ofOthers cannot read the folders", Pc.FAILED);
      }
    }

    /** Proof.ofAll: the same of all but the kept metadata. */
    private void proveAll() {
      if (plants(Defect.FORGETS_BEFORE_THE_PROOF)) {
        step("forgets first", Pc.DELETE_KEPT, n -> n.set(Var.FORGOTTEN, 1));
        return;
      }

      boolean left = s.has(Var.STRAY) || s.has(Var.DATA) || s.has(Var.MANIFEST) || s.has(Var.LIST);
      step(left ? "Proof.ofAll finds plaintext" : "Proof.ofAll", left ? Pc.FAILED : next());
      fault("Proof.ofAll cannot read the folders", Pc.FAILED);
    }

    private void forget() {
      step("PurgeRecord.forget", Pc.DONE, n -> n.set(Var.FORGOTTEN, 1)); // or has nothing to
      fault("PurgeRecord.forget, and the answer is lost", Pc.FAILED, n -> n.set(Var.FORGOTTEN, 1));
      fault("PurgeRecord.forget fails", Pc.FAILED);
    }
  }

  private static Explorer explore(Defect defect) {
    return Explorer.explore(new Purge(defect, LakeFixture.NIGHTLY ? 3 : 2), Var.class);
  }

  @Test
  void thePurgeForgetsNothing() {
    explore(Defect.NONE).requireSound("purge_plaintext");
  }

  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "NONE")
  void aPlantedDefectIsFound(Defect defect) {
    String wrong =
        switch (defect) {
          case DELETES_IN_ANY_ORDER,
              TAKES_FAILURES_FOR_DELETED,
              BELIEVES_THE_STORAGE,
              TAKES_MISSING_FOR_NOTHING ->
              "nothing names old files";
          case FORGETS_BEFORE_THE_PROOF -> "has forgotten plaintext";
          case DELETES_BEFORE_A_RECORD -> "files of a plaintext table";
          default -> "cannot go on";
        };
    explore(defect).requireBroken("purge_plaintext, " + defect, wrong);
  }
}
