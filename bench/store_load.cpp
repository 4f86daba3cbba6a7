// Mirrors all Nodes and Pods of an API server exactly as the controller does, and prints as JSON
// what that has cost up to the moment both stores are complete. bench/clientgo does the same with
// client-go's informers and prints the same members.
#include <chrono>
#include <exception>
#include <fstream>
#include <iostream>
#include <malloc.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include "api/decode.hpp"
#include "base/log.hpp"
#include "kube/indexes.hpp"
#include "kube/informer.hpp"

namespace {

using namespace kwatt;
namespace asio = boost::asio;

constexpr Duration kTimeout = std::chrono::minutes{5};

// A figure of /proc/self/status that is given in kB, in bytes.
std::int64_t process_status(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    if (word != key + ":") continue;
    std::int64_t kilobytes = 0;
    file >> kilobytes;
    return kilobytes * 1024;
  }
  throw std::runtime_error("/proc/self/status does not tell " + key);
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

kube::WatchTarget all(const kube::Resource& resource) {
  kube::WatchTarget target;
  target.resource = resource;
  return target;
}

template <class T>
typename kube::Informer<T>::Decode decoder(api::Interner* interner) {
  return [interner](std::string_view json) -> Result<T> {
    T object{};
    if (auto done = api::decode(json, object, interner); !done) return done.error();
    return object;
  };
}

kube::Task<int> load(asio::any_io_executor executor, kube::Config config) {
  const auto started = std::chrono::steady_clock::now();
  const SystemClock clock;
  Metrics metrics;
  const auto client = kube::make_client(executor, config, {}, clock);
  api::Interner interner;
  kube::Informer<api::Node> nodes(*client, all(kube::resources::nodes()),
                                  decoder<api::Node>(nullptr), clock, metrics);
  kube::Informer<api::Pod> pods(*client, all(kube::resources::pods()), decoder<api::Pod>(&interner),
                                clock, metrics, kube::pod_indexes());
  asio::co_spawn(executor, nodes.run(), asio::detached);
  asio::co_spawn(executor, pods.run(), asio::detached);
  const std::vector<const kube::StoreState*> stores{&nodes.store(), &pods.store()};
  const auto ready = co_await kube::wait_until_ready(stores, kTimeout);
  if (!ready) {
    std::cerr << "bench_store_load: " << ready.error().text() << '\n';
    co_return 1;
  }
  const double cpu = cpu_seconds();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - started;
  const std::int64_t untrimmed = process_status("VmRSS");
  malloc_trim(0);
  fmt::print(R"({{"nodes": {}, "pods": {}, "wall_seconds": {:.3f}, "cpu_seconds": {:.3f}, )"
             R"("resident_bytes": {}, "untrimmed_bytes": {}, "peak_bytes": {}, "templates": {}}})"
             "\n",
             nodes.store().size(), pods.store().size(), wall.count(), cpu, process_status("VmRSS"),
             untrimmed, process_status("VmHWM"), interner.templates());
  std::fflush(stdout);
  // The informers are still running on these stores: nothing is unwound.
  std::_Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Loads all Nodes and Pods into kwatt's stores and prints what it has cost.");
  std::string kubeconfig;
  app.add_option("--kubeconfig", kubeconfig, "Where the API server is")->required();
  CLI11_PARSE(app, argc, argv);
  log::setup("bench_store_load", log::Level::warn, log::Format::logfmt);
  auto config = kube::find_config({.kubeconfig = kubeconfig, .context = {}});
  if (!config) {
    std::cerr << "bench_store_load: " << config.error().text() << '\n';
    return 1;
  }
  asio::io_context context(1);
  int status = 1;
  asio::co_spawn(context, load(context.get_executor(), std::move(*config)),
                 [&](const std::exception_ptr& error, int code) {
                   status = code;
                   context.stop();
                   if (error) std::rethrow_exception(error);
                 });
  context.run();
  return status;
}
