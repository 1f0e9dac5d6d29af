"""A client in another language, made from nothing but the .proto files.

Usage: client.py DATA_ADDRESS READ_ADDRESS, as gRPC writes them (127.0.0.1:7433, unix:/run/data.sock),
with the generated stubs on PYTHONPATH. Asks, completes, streams and reads; every expectation is an
assertion, and the last line says "ok".
"""

import sys
import uuid

import grpc
from google.protobuf.duration_pb2 import Duration

from tollgate.v1 import governance_pb2 as gate
from tollgate.v1 import governance_pb2_grpc as gate_grpc
from tollgate.v1 import journal_pb2 as journal
from tollgate.v1 import journal_pb2_grpc as journal_grpc
from tollgate.v1 import policy_pb2 as policy
from tollgate.v1 import policy_pb2_grpc as policy_grpc

# gRPC's core sends the path of a Unix socket as the authority, which no server in Rust accepts: say another.
OPTIONS = [("grpc.default_authority", "localhost")]

RUN = gate.RunKey(
    tenant="acme",
    workspace="desk",
    owner_kind=gate.OWNER_KIND_RUN,
    owner_id="python-agent",
    run_id=str(uuid.uuid4()),
)


def call(tool, arguments):
    """A first attempt of a fresh tool call."""
    return gate.EvaluateRequest(
        run=RUN,
        agent=gate.Agent(id="python-agent", revision="1"),
        tool=gate.Tool(id=tool),
        tool_call_id=str(uuid.uuid4()),
        invocation_id=str(uuid.uuid4()),
        arguments_json=arguments.encode(),
    )


def evaluate_and_complete(stub):
    request = call("desk.read", '{"query": "refunds"}')
    allowed = stub.Evaluate(request, timeout=10)
    assert allowed.decision == gate.DECISION_ALLOW, allowed
    assert allowed.invocation_id == request.invocation_id and allowed.attempt == 1
    again = stub.Evaluate(request, timeout=10)
    assert again.repeat and again.sequence == allowed.sequence

    completed = stub.Complete(
        gate.CompleteRequest(run=RUN, invocation_id=allowed.invocation_id, succeeded=gate.Succeeded()), timeout=10
    )
    assert completed.governed.kind == gate.OUTCOME_KIND_SUCCEEDED and not completed.repeat

    denied = stub.Evaluate(call("desk.write", "{}"), timeout=10)
    assert denied.decision == gate.DECISION_DENY and denied.code == "writing_denied", denied
    assert denied.message


def integers_are_exact(stub):
    """2^53 + 1 has no double; a policy denies exactly it, and neither of its neighbours."""
    for count, code in [
        (9007199254740992, ""),
        (9007199254740993, "exact_count"),
        (9007199254740994, ""),
        # The smallest integer is one as well; the policy against negative counts denies it.
        (-9223372036854775808, "tool_execution_denied"),
        (9223372036854775807, "policy_error"),
        (9223372036854775808, "argument_unrepresentable"),
    ]:
        answer = stub.Evaluate(call("pay.send", '{"count": %d}' % count), timeout=10)
        assert answer.code == code, (count, answer)


def errors_have_reasons(stub):
    try:
        stub.Evaluate(gate.EvaluateRequest(run=RUN), timeout=10)
        raise AssertionError("an incomplete call was judged")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
        details = dict(error.trailing_metadata())["grpc-status-details-bin"]
        assert b"INVALID_FIELD" in details and b"tollgate.dev" in details, details


def stream(stub):
    requests = [call("desk.read" if number % 2 else "desk.write", "{}") for number in range(40)]
    elements = (
        gate.EvaluateStreamRequest(evaluate=gate.StreamEvaluate(request=request, timeout=Duration(seconds=10)))
        for request in requests
    )
    answers = {answer.invocation_id: answer.response for answer in stub.EvaluateStream(elements, timeout=20)}
    assert len(answers) == len(requests)
    for request in requests:
        expected = gate.DECISION_ALLOW if request.tool.id == "desk.read" else gate.DECISION_DENY
        assert answers[request.invocation_id].decision == expected


def read(channel):
    facts, after = [], 0
    while True:
        page = journal_grpc.JournalServiceStub(channel).ListFacts(
            journal.ListFactsRequest(run=RUN, after_sequence=after, limit=20), timeout=10
        )
        facts.extend(page.facts)
        if not page.HasField("next"):
            break
        after = page.next
    assert [fact.sequence for fact in facts] == list(range(1, len(facts) + 1))
    kinds = [fact.WhichOneof("body") for fact in facts]
    assert kinds[:3] == ["tool_call_started", "governance_evaluated", "tool_call_completed"], kinds
    assert kinds.count("governance_evaluated") == 48, kinds
    status = policy_grpc.PolicyServiceStub(channel).GetStatus(policy.GetStatusRequest(), timeout=10)
    assert status.active.generation.number == 1


def main():
    data, reading = sys.argv[1:]
    with grpc.insecure_channel(data, OPTIONS) as channel:
        stub = gate_grpc.GovernanceServiceStub(channel)
        evaluate_and_complete(stub)
        integers_are_exact(stub)
        errors_have_reasons(stub)
        stream(stub)
        unary = channel.unary_unary("/grpc.health.v1.Health/Check", bytes, bytes)
        assert unary(b"", timeout=10) == b"\x08\x01", "SERVING, as any health probe reads it"
    with grpc.insecure_channel(reading, OPTIONS) as channel:
        read(channel)
    print("ok")


main()
