#include "net/connection.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kwatt::net {

namespace {

using std::chrono::steady_clock;

constexpr std::size_t read_bytes = 16 * 1024;
// A body up to this size travels in one packet train with its header.
constexpr std::size_t join_bytes = 64 * 1024;
constexpr int most_interim_responses = 8;

Task<Result<void>> send_all(Transport& transport, const Outgoing& outgoing, SteadyPoint deadline) {
  if (outgoing.body.size() <= join_bytes)
    co_return co_await transport.write(outgoing.head + outgoing.body, deadline);
  auto sent = co_await transport.write(outgoing.head, deadline);
  if (!sent) co_return sent;
  co_return co_await transport.write(outgoing.body, deadline);
}

bool is_lost(const Error& error) {
  return error.code == ErrorCode::unavailable;
}

}  // namespace

Error fault_error(Fault fault) {
  const auto code = fault == Fault::incomplete ? ErrorCode::unavailable : ErrorCode::protocol;
  return fail(code, std::string{describe(fault)});
}

Task<Result<void>> read_more(Connection& connection, MessageReader& reader, SteadyPoint deadline) {
  const auto more = co_await fill(*connection.transport, connection.buffer, read_bytes, deadline);
  if (!more) co_return more.error();
  connection.answered = connection.answered || *more;
  const auto fault = *more ? reader.feed(connection.buffer) : reader.end();
  if (fault) co_return fault_error(*fault);
  co_return Result<void>{};
}

Task<Result<MessageReader>> begin_exchange(Connection& connection, const Outgoing& outgoing,
                                           MessageReader::Kind kind, Limits limits,
                                           std::optional<std::size_t> body_bytes,
                                           SteadyPoint total) {
  connection.answered = false;
  const auto sent = co_await send_all(*connection.transport, outgoing,
                                      std::min(total, steady_clock::now() + limits.header));
  // A server may answer, for example 413, and close without reading everything: look for that
  // answer before reporting the broken pipe.
  if (!sent && !is_lost(sent.error()))
    co_return sent.error().with_context(connection.name + ": sending the request");

  const SteadyPoint deadline = std::min(total, steady_clock::now() + limits.header);
  for (int interim = 0; interim <= most_interim_responses; ++interim) {
    MessageReader reader{kind, limits.header_bytes, body_bytes};
    if (const auto fault = reader.feed(connection.buffer))
      co_return fault_error(*fault).with_context(connection.name + ": the response");
    while (!reader.header_done()) {
      const auto read = co_await read_more(connection, reader, deadline);
      if (read) continue;
      if (read.error().code == ErrorCode::timeout)
        co_return fail(ErrorCode::timeout,
                       fmt::format("{}: no response within {}", connection.name,
                                   format_go_duration(std::min(limits.header, limits.total))));
      const Error& error = !sent && is_lost(read.error()) ? sent.error() : read.error();
      co_return error.with_context(connection.name + ": waiting for the response");
    }
    const int status = reader.message().status;
    if (status == 101)
      co_return fail(ErrorCode::protocol,
                     connection.name + ": the peer switched protocols without being asked");
    if (status >= 200) co_return std::move(reader);
  }
  co_return fail(ErrorCode::protocol, connection.name + ": too many interim responses");
}

bool reusable(Connection& connection, const MessageReader& reader) {
  return reader.done() && reader.keep_alive() && connection.buffer.empty() &&
         connection.transport->quiet();
}

}  // namespace kwatt::net
