import java.nio.file.Path;
import org.apache.solr.client.solrj.embedded.JettyConfig;
import org.apache.solr.client.solrj.embedded.JettySolrRunner;

/** Serve the Solr home of the first argument on loopback, until standard input ends. */
public class Solr {
  public static void main(String[] args) throws Exception {
    System.setProperty("solr.log.dir", args[0]);
    JettyConfig config = JettyConfig.builder().setContext("/solr").setPort(0).build();
    JettySolrRunner server = new JettySolrRunner(args[0], config);
    server.start();
    System.out.println("port " + server.getLocalPort());
    while (System.in.read() >= 0) {}
    server.stop();
    System.exit(0);
  }
}
