"""All operations, and the sequences of them that are known to be dangerous."""

from twin.operations.base import Draw as Draw
from twin.operations.base import Operation as Operation
from twin.operations.dml import DML
from twin.operations.evolution import EVOLUTION
from twin.operations.maintenance import MAINTENANCE
from twin.operations.ours import OURS
from twin.operations.refs import REFS
from twin.operations.streams import STREAMS

EVERY: list[type[Operation]] = [*DML, *EVOLUTION, *REFS, *MAINTENANCE, *STREAMS, *OURS]
BY_NAME = {operation.named(): operation for operation in EVERY}

DANGEROUS = [
    [BY_NAME[name] for name in sequence.split()]
    for sequence in (
        "Stream StreamAgain Encrypt StreamAgain Purge Stream StreamAgain",
        "Stream Stream ExpireAll StreamAgain Decrypt StreamAgain",
        "InsertMany Insert EncryptPortion Delete RewriteDataFiles Encrypt Purge",
        "InsertMany EncryptPortion RemoveOrphans Delete EncryptPortion ExpireAll Encrypt",
        "Encrypt Insert Purge Decrypt Insert Encrypt Purge RemoveOrphans",
        "InsertMany UpsertAsFlink RewriteDataFiles UpsertAsFlink Reencrypt Insert",
        "InsertMany Delete RewriteDataFiles Delete RewritePositionDeletes ExpireAll",
        "Stage Encrypt Insert Purge ExpireAll",
        "Stage RotateKek Prune Publish ExpireAll Prune",
        "CreateBranch Delete Reencrypt FastForward ExpireAll RemoveOrphans",
        "Insert CreateTag Overwrite RotateMasterKey ExpireAll Prune Rollback",
        "Insert Rollback Insert RotateKek GoOnInCopy Merge ExpireAll",
        "AddColumn Insert Rollback DropColumn Encrypt Insert Purge",
        "AddPartitionField Insert DropPartitionField Delete Reencrypt RewriteManifests",
        "InsertMany Replace Rollback RotateKek Delete ExpireAll",
    )
]
