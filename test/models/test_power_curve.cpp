#include <doctest/doctest.h>

#include "models/power_curve.hpp"

namespace kwatt::models {
namespace {

using std::chrono::seconds;

// HP ProLiant ML110 G5 in milliwatts, the host type of the PlanetLab experiments.
const std::vector<std::int64_t> kMl110G5 = {93'700,  97'000,  101'000, 105'000, 110'000, 116'000,
                                            121'000, 125'000, 129'000, 133'000, 135'000};

TEST_CASE("power is linear between the points of the curve, and the ends hold outside") {
  api::PowerModelSpec spec;
  spec.curve_milliwatts = kMl110G5;
  const PowerModel model = model_of(spec, Millicores{2000});
  struct Case {
    std::int64_t permille, milliwatts;
  };
  const Case cases[] = {{0, 93'700},    {50, 95'350},    {100, 97'000},
                        {333, 106'650}, {999, 134'980},  {1000, 135'000},
                        {-5, 93'700},   {1200, 135'000}, {905, 133'100}};
  for (const Case& c : cases) {
    CAPTURE(c.permille);
    CHECK(model.curve.at(Permille{c.permille}).count() == c.milliwatts);
  }
  CHECK(model.specified);
}

TEST_CASE("a model without a curve is a line from idle to max") {
  api::PowerModelSpec spec;
  spec.idle_milliwatts = 100'000;
  spec.max_milliwatts = 300'000;
  const PowerModel model = model_of(spec, Millicores{8000});
  CHECK(model.curve.idle() == watts(100));
  CHECK(model.curve.at(percent(45)) == watts(190));
  CHECK(model.curve.maximum() == watts(300));
  CHECK(model.specified);
}

TEST_CASE("a curve wins over idle and max") {
  api::PowerModelSpec spec;
  spec.curve_milliwatts = kMl110G5;
  spec.idle_milliwatts = 1;
  spec.max_milliwatts = 2;
  CHECK(model_of(spec, Millicores{2000}).curve.maximum() == watts(135));
}

TEST_CASE("without a model the default curve grows with the CPUs and never falls with load") {
  Milliwatts last;
  for (const std::int64_t cpus : {1, 4, 16, 64, 128, 256}) {
    CAPTURE(cpus);
    const PowerModel model = model_of({}, Millicores{cpus * 1000});
    CHECK_FALSE(model.specified);
    CHECK(model.curve.maximum() > last);
    last = model.curve.maximum();
    for (std::int64_t load = 1; load <= 1000; ++load) {
      CHECK(model.curve.at(Permille{load}) >= model.curve.at(Permille{load - 1}));
    }
  }
  // An ASUS RS700A with two EPYC 7763 (256 logical CPUs) is published with 406 W at full load.
  const Milliwatts big = model_of({}, Millicores{256'000}).curve.maximum();
  CHECK(big > watts(300));
  CHECK(big < watts(550));
}

TEST_CASE("switching costs what the model says, else power times time") {
  api::PowerModelSpec spec;
  spec.idle_milliwatts = 50'000;
  spec.max_milliwatts = 200'000;
  spec.boot_seconds = 90;
  spec.shutdown_seconds = 30;
  PowerModel model = model_of(spec, Millicores{4000});
  CHECK(model.boot == seconds{90});
  CHECK(model.boot_energy.count() == 200'000 * 90);
  CHECK(model.shutdown == seconds{30});
  CHECK(model.shutdown_energy.count() == 50'000 * 30);
  spec.boot_joules = 12'000;
  CHECK(model_of(spec, Millicores{4000}).boot_energy.count() == 12'000'000);
  CHECK(model_of({}, Millicores{4000}).boot_energy.count() == 0);
}

}  // namespace
}  // namespace kwatt::models
