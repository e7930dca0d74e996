package io.icebergcrypto.spark;

import org.apache.iceberg.spark.ExtendedParser;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import scala.collection.Seq;

/** The one method of a parser that returns a list of Scala's, as Scala 2.12 has it. */
abstract class IdentifierParser implements ExtendedParser {
  final ParserInterface delegate;

  IdentifierParser(ParserInterface delegate) {
    this.delegate = delegate;
  }

  @Override
  public final Seq<String> parseMultipartIdentifier(String text) throws ParseException {
    return delegate.parseMultipartIdentifier(text);
  }
}
