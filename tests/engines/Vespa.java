import com.yahoo.searchlib.rankingexpression.RankingExpression;
import com.yahoo.searchlib.rankingexpression.evaluation.MapContext;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Score the rows of a folder by every ranking expression in it; column j is named fj. */
public class Vespa {
  public static void main(String[] args) throws Exception {
    System.out.println("ready");
    Path folder = Path.of(args[0]);
    List<String> rows = Files.readAllLines(folder.resolve("rows"));
    try (DirectoryStream<Path> models = Files.newDirectoryStream(folder, "*.expression")) {
      for (Path model : models) {
        RankingExpression expression = new RankingExpression(Files.readString(model));
        List<String> scores = new ArrayList<>();
        for (String row : rows) {
          MapContext context = new MapContext();
          String[] values = row.split("\t");
          for (int j = 0; j < values.length; j++) {
            context.put("f" + j, Double.parseDouble(values[j]));
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
