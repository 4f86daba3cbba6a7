#include "test/controller/memory_api.hpp"

#include <charconv>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "net/run.hpp"
#include "test/support/fake_api_server.hpp"

namespace kwatt::test {

namespace asio = boost::asio;
using asio::ip::tcp;
using Json = rapidjson::Document;

namespace {

constexpr auto token = asio::as_tuple(asio::use_awaitable);

Json parsed(const std::string& text) {
  Json json;
  json.Parse(text.data(), text.size());
  if (json.HasParseError() || !json.IsObject()) json.SetObject();
  return json;
}

std::string text_of(const rapidjson::Value& json) {
  rapidjson::StringBuffer out;
  rapidjson::Writer<rapidjson::StringBuffer> writer(out);
  json.Accept(writer);
  return {out.GetString(), out.GetSize()};
}

// RFC 7386.
void merge(rapidjson::Value& into, const rapidjson::Value& patch, Json& owner) {
  auto& pool = owner.GetAllocator();
  if (!patch.IsObject()) {
    into.CopyFrom(patch, pool);
    return;
  }
  if (!into.IsObject()) into.SetObject();
  for (const auto& member : patch.GetObject()) {
    if (member.value.IsNull()) {
      into.RemoveMember(member.name);
      continue;
    }
    if (!into.HasMember(member.name)) {
      into.AddMember(rapidjson::Value(member.name, pool), rapidjson::Value(), pool);
    }
    merge(into[member.name], member.value, owner);
  }
}

std::string version_of(const Json& json) {
  const auto meta = json.FindMember("metadata");
  if (meta == json.MemberEnd() || !meta->value.IsObject()) return "";
  const auto version = meta->value.FindMember("resourceVersion");
  return version == meta->value.MemberEnd() || !version->value.IsString()
             ? ""
             : version->value.GetString();
}

struct Asked {
  std::string method, path, query, body;
};

// Removes one complete request from the front of `buffer`.
std::optional<Asked> take_request(std::string& buffer) {
  const auto end = buffer.find("\r\n\r\n");
  if (end == std::string::npos) return std::nullopt;
  std::size_t length = 0;
  const auto at = buffer.find("Content-Length: ");
  if (at < end) std::from_chars(buffer.data() + at + 16, buffer.data() + end, length);
  if (buffer.size() < end + 4 + length) return std::nullopt;
  Asked asked;
  const auto blank = buffer.find(' ');
  asked.method = buffer.substr(0, blank);
  const std::string target = buffer.substr(blank + 1, buffer.find(' ', blank + 1) - blank - 1);
  asked.path = target.substr(0, target.find('?'));
  if (asked.path.size() < target.size()) asked.query = target.substr(asked.path.size());
  asked.body = buffer.substr(end + 4, length);
  buffer.erase(0, end + 4 + length);
  return asked;
}

}  // namespace

struct MemoryApi::Impl {
  explicit Impl(unsigned seed)
      : random(seed),
        acceptor(context.get_executor(), tcp::endpoint{asio::ip::address_v4::loopback(), 0}),
        late_timer(context.get_executor()) {}

  // A watch and what it has not sent yet.
  struct Watch {
    std::string path;
    std::string pending;
    net::Signal changed;
  };

  std::set<Watch*> watches;
  net::Context context;
  std::mt19937 random;
  tcp::acceptor acceptor;
  asio::steady_timer late_timer;
  std::map<std::string, std::string> objects;
  OnRequest on_request;
  std::size_t number = 0;
  long version = 100;
  bool silent = false;
  std::thread thread;

  void store(const std::string& path, Json json) {
    const bool there = objects.contains(path);
    auto& pool = json.GetAllocator();
    if (!json.HasMember("metadata")) json.AddMember("metadata", rapidjson::kObjectType, pool);
    auto& meta = json["metadata"];
    meta.RemoveMember("resourceVersion");
    meta.AddMember("resourceVersion", rapidjson::Value(std::to_string(++version).c_str(), pool),
                   pool);
    objects[path] = text_of(json);
    for (Watch* watch : watches) {
      if (path.rfind('/') != watch->path.size() || !path.starts_with(watch->path)) continue;
      watch->pending += frame_json(there ? "MODIFIED" : "ADDED", objects[path]);
      watch->changed.notify_all();
    }
  }

  std::string list(const std::string& path) const {
    std::vector<std::string> items;
    for (const auto& [name, json] : objects) {
      if (name.rfind('/') == path.size() && name.starts_with(path)) items.push_back(json);
    }
    return json_response(200, list_json(items, std::to_string(version)));
  }

  std::string write(const Asked& asked) {
    std::string path = asked.path;
    if (asked.method == "POST") {
      const Json json = parsed(asked.body);
      const auto meta = json.FindMember("metadata");
      const bool named = meta != json.MemberEnd() && meta->value.HasMember("name");
      path += "/" + std::string(named ? meta->value["name"].GetString() : "generated");
      if (objects.contains(path)) return json_response(409, status_json(409, "AlreadyExists"));
      store(path, parsed(asked.body));
      return json_response(201, objects[path]);
    }
    if (path.ends_with("/status")) path.resize(path.size() - 7);
    const auto found = objects.find(path);
    if (found == objects.end()) return json_response(404, status_json(404, "NotFound"));
    const Json patch = parsed(asked.body);
    Json now = parsed(found->second);
    const std::string from = version_of(patch);
    if (!from.empty() && from != version_of(now)) {
      return json_response(409, status_json(409, "Conflict"));
    }
    if (asked.method == "PUT") now.SetObject();
    merge(now, patch, now);
    store(path, std::move(now));
    return json_response(200, objects[path]);
  }

  std::string answer(const Asked& asked) {
    if (asked.method != "GET") return write(asked);
    const auto found = objects.find(asked.path);
    if (found != objects.end()) return json_response(200, found->second);
    // Lists have the plural, in lower case, as their last word; groups that are not here have none.
    const bool known = asked.path.find("autoscaling.x-k8s.io") == std::string::npos &&
                       asked.path.find("remediation.medik8s.io") == std::string::npos &&
                       asked.path.find("/kwatt-controller") == std::string::npos;
    return known ? list(asked.path) : json_response(404, status_json(404, "NotFound"));
  }

  net::Task<void> watch(std::shared_ptr<tcp::socket> socket, std::string path) {
    const auto kept = std::make_shared<Watch>();
    kept->path = std::move(path);
    struct Entry {
      std::set<Watch*>& all;
      Watch* one;
      ~Entry() { all.erase(one); }
    };
    watches.insert(kept.get());
    const Entry entry{watches, kept.get()};
    std::string bytes = chunked_head();
    for (;;) {
      auto [ec, count] = co_await asio::async_write(*socket, asio::buffer(bytes), token);
      if (ec) co_return;
      while (silent || kept->pending.empty()) {
        co_await kept->changed.wait_for(std::chrono::hours{1});
      }
      bytes = chunk(kept->pending);
      kept->pending.clear();
    }
  }

  net::Task<void> serve(std::shared_ptr<tcp::socket> socket) {
    std::string buffer;
    std::string piece(64 * 1024, '\0');
    for (;;) {
      auto asked = take_request(buffer);
      if (!asked) {
        auto [ec, count] = co_await socket->async_read_some(asio::buffer(piece), token);
        if (ec) co_return;
        buffer.append(piece, 0, count);
        continue;
      }
      const std::string line = asked->method + " " + asked->path + asked->query;
      if (on_request) on_request(++number, line);
      co_await net::sleep(Duration{random() % 3});
      // Nobody answers a TokenReview here: whoever asks for one waits until the end.
      while (silent || asked->path.ends_with("/tokenreviews")) {
        co_await net::sleep(std::chrono::hours{1});
      }
      if (asked->query.find("watch=1") != std::string::npos) {
        co_await watch(socket, asked->path);
        co_return;
      }
      const std::string bytes = answer(*asked);
      auto [ec, count] = co_await asio::async_write(*socket, asio::buffer(bytes), token);
      if (ec) co_return;
    }
  }

  net::Task<void> accept_all() {
    for (;;) {
      auto [ec, accepted] = co_await acceptor.async_accept(token);
      if (ec) co_return;
      const auto socket = std::make_shared<tcp::socket>(std::move(accepted));
      socket->set_option(tcp::no_delay{true});
      asio::co_spawn(context.get_executor(), serve(socket), asio::detached);
    }
  }
};

MemoryApi::MemoryApi(unsigned seed) : impl_(std::make_unique<Impl>(seed)) {}

MemoryApi::~MemoryApi() {
  stop();
  impl_->context.end();
}

void MemoryApi::stop() {
  impl_->context.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
}

void MemoryApi::put(const std::string& path, const std::string& json) {
  impl_->store(path, parsed(json));
}

void MemoryApi::start(OnRequest on_request, int milliseconds, std::function<void()> late) {
  impl_->on_request = std::move(on_request);
  asio::co_spawn(impl_->context.get_executor(), impl_->accept_all(), asio::detached);
  impl_->late_timer.expires_after(std::chrono::milliseconds{milliseconds});
  impl_->late_timer.async_wait([late = std::move(late)](const boost::system::error_code& error) {
    if (!error) late();
  });
  impl_->thread = std::thread([impl = impl_.get()] { impl->context.run(); });
}

void MemoryApi::silence() {
  impl_->silent = true;
}

void MemoryApi::steal(const std::string& lease) {
  const auto found = impl_->objects.find(lease);
  if (found == impl_->objects.end()) return;
  Json now = parsed(found->second);
  const Json thief = parsed(R"({"spec":{"holderIdentity":"thief","leaseDurationSeconds":3600}})");
  merge(now, thief, now);
  impl_->store(lease, std::move(now));
}

std::string MemoryApi::get(const std::string& path) const {
  const auto found = impl_->objects.find(path);
  return found == impl_->objects.end() ? "" : found->second;
}

std::uint16_t MemoryApi::port() const {
  return impl_->acceptor.local_endpoint().port();
}

}  // namespace kwatt::test
