import com.yahoo.searchlib.rankingexpression.RankingExpression;
import com.yahoo.searchlib.rankingexpression.evaluation.MapContext;
import com.yahoo.searchlib.rankingexpression.evaluation.StringValue;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/**
 * Score the rows of a folder by every ranking expression in it. The first row has the names of the
 * columns; text is an x and the digits of its bytes.
 */
public class Vespa {
  public static void main(String[] args) throws Exception {
    System.out.println("ready");
    Path folder = Path.of(args[0]);
    List<String> rows = Files.readAllLines(folder.resolve("rows"));
    String[] names = rows.get(0).split("\t");
    try (DirectoryStream<Path> models = Files.newDirectoryStream(folder, "*.expression")) {
      for (Path model : models) {
        RankingExpression expression = new RankingExpression(Files.readString(model));
        List<String> scores = new ArrayList<>();
        for (String row : rows.subList(1, rows.size())) {
          MapContext context = new MapContext();
          String[] values = row.split("\t");
          for (int j = 0; j < values.length; j++) {
            if (values[j].startsWith("x")) {
              byte[] text = HexFormat.of().parseHex(values[j].substring(1));
              String read = new String(text, StandardCharsets.UTF_8);
              context.put(names[j], new StringValue(read));
            } else {
              context.put(names[j], Double.parseDouble(values[j].replace("nan", "NaN")));
            }
          }
          scores.add(Double.toString(expression.evaluate(context).asDouble()));
        }
        Files.write(Path.of(model.toString().replace(".expression", ".scores")), scores);
      }
    }
    System.out.println("done");
    while (System.in.read() >= 0) {}
  }
}
