# Sourced, with 4.0, 3.5 or 3.5_2.13: puts the virtual environment with that Spark first on the PATH. Of 3.5_2.13, Scala's
# version, pip's 3.5 has all but the jars, which Gradle fetched: SPARK_HOME is a folder with these and pip's programs.
PATH="$PWD/.venv-${1%_*}/bin:$PATH"
if [[ $1 == *_* ]]; then
  export SPARK_HOME="$PWD/jvm/build/spark-$1"
  ln -sfn "$(python -c 'import pyspark; print(pyspark.__path__[0])')/bin" "$SPARK_HOME/bin"
fi
