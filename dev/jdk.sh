# Sourced: puts one JDK, JAVA_HOME's or else the one of the javac on the PATH, before all others on the PATH and into
# JAVA_HOME. Gradle, Spark and whatever looks for `java` then run on the same one. tools.sh has seen that it is there.
if [[ -z ${JAVA_HOME:-} ]]; then
  # Asked of javac itself: what is on the PATH may be a link, or a script that chooses one of several JDKs.
  JAVA_HOME=$(javac -J-XshowSettings:properties -version 2>&1 | sed -n 's/^ *java\.home = //p')
fi
[[ -x $JAVA_HOME/bin/javac ]] || {
  printf 'error: %s\n  hint: %s\n' "JAVA_HOME=$JAVA_HOME has no bin/javac" "unset JAVA_HOME, or point it at a JDK of 17 or later" >&2
  exit 1
}
export JAVA_HOME PATH="$JAVA_HOME/bin:$PATH"
