"""Nutch's conf/index-writers.xml as it is delivered: all its writers and their parameters."""

_WRITERS = {
    ("indexer_solr_1", "solr.SolrIndexWriter"): {
        "type": "http", "url": "http://localhost:8983/solr/nutch", "collection": "",
        "weight.field": "", "commitSize": "1000", "auth": "false", "username": "username",
        "password": "password",
    },
    ("indexer_rabbit_1", "rabbit.RabbitIndexWriter"): {
        "server.uri": "amqp://guest:guest@localhost:5672/", "binding": "false",
        "binding.arguments": "", "exchange.name": "",
        "exchange.options": "type=direct,durable=true", "queue.name": "nutch.queue",
        "queue.options": "durable=true,exclusive=false,auto-delete=false", "routingkey": "",
        "commit.mode": "multiple", "commit.size": "250", "headers.static": "",
        "headers.dynamic": "",
    },
    ("indexer_dummy_1", "dummy.DummyIndexWriter"): {
        "delete": "false", "path": "./dummy-index.txt",
    },
    ("indexer_csv_1", "csv.CSVIndexWriter"): {
        "fields": "id,title,content", "charset": "UTF-8", "separator": ",", "valuesep": "|",
        "quotechar": "&quot;", "escapechar": "&quot;", "maxfieldlength": "4096",
        "maxfieldvalues": "12", "header": "true", "outpath": "csvindexwriter",
    },
    ("indexer_elastic_1", "elastic.ElasticIndexWriter"): {
        "host": "localhost", "port": "9200", "scheme": "http", "index": "nutch",
        "username": "elastic", "password": "", "max.bulk.docs": "250",
        "max.bulk.size": "2500500", "exponential.backoff.millis": "100",
        "exponential.backoff.retries": "10", "bulk.close.timeout": "600",
    },
    ("indexer_cloud_search_1", "cloudsearch.CloudSearchIndexWriter"): {
        "endpoint": "", "region": "", "batch.dump": "false", "batch.maxSize": "-1",
    },
    ("indexer_kafka_1", "kafka.KafkaIndexWriter"): {
        "host": "", "port": "9092", "topic": "",
        "key.serializer": "org.apache.kafka.common.serialization.ByteArraySerializer",
        "value.serializer": "org.apache.kafka.connect.json.JsonSerializer",
        "max.doc.count": "100",
    },
}  # fmt: skip
_MAPPING = """<mapping>
  <copy><field source="title" dest="title,search"/></copy>
  <rename><field source="metatag.description" dest="description"/></rename>
  <remove><field source="segment"/></remove>
</mapping>"""


def index_writers_xml():
    """Returns the content of the file."""
    writers = []
    for (name, java), parameters in _WRITERS.items():
        lines = "".join(f'<param name="{key}" value="{v}"/>' for key, v in parameters.items())
        java = f"org.apache.nutch.indexwriter.{java}"
        writers.append(
            f'<writer id="{name}" class="{java}"><parameters>{lines}</parameters>{_MAPPING}</writer>'
        )
    return (
        '<?xml version="1.0" encoding="UTF-8" ?>\n'
        f'<writers xmlns="http://lucene.apache.org/nutch">{"".join(writers)}</writers>'
    )


def exchanges_xml(*names):
    """Returns an exchanges.xml by which some writers get all documents."""
    writers = "".join(f'<writer id="{name}"/>' for name in names)
    return (
        '<exchanges xmlns="http://lucene.apache.org/nutch"><exchange id="default" class="default">'
        f"<writers>{writers}</writers><params/></exchange></exchanges>"
    )
