# A replay server. CPU by default:
#
#   scripts/build_image.sh
#   docker run --rm -p 8000:8000 gear-reverb --config "$(cat tables.textproto)"
#
# With kernels for GPUs: --build-arg CUDA=1, on a base that gets them into a container, such as
# --build-arg BASE_IMAGE=nvidia/cuda:13.0.0-base-ubuntu24.04. Any base must be Debian 12, Ubuntu 24.04 or
# newer. Build tools stay out of the image.
ARG BASE_IMAGE=docker.io/library/debian:bookworm-slim

# The three secrets are optional; they hold the building machine's settings for apt, for pip and its
# certificate authorities, and leave no trace in the image. scripts/build_image.sh provides them.
FROM ${BASE_IMAGE} AS build
# Extras of pyproject.toml to install too: "demo" for compose.yaml.
ARG EXTRAS=""
ENV DEBIAN_FRONTEND=noninteractive
WORKDIR /source
COPY scripts/install_system.sh scripts/system_packages.txt scripts/install_nvcc.sh scripts/find_python.sh scripts/
RUN --mount=type=secret,id=apt_conf,target=/etc/apt/apt.conf.d/99build \
    --mount=type=secret,id=ca_certificates,target=/run/build/ca.crt \
    scripts/install_system.sh
# "1": kernels for GPUs too, by a compiler that stays out of the image as well.
ARG CUDA=""
RUN --mount=type=secret,id=pip_conf,target=/etc/pip.conf \
    --mount=type=secret,id=ca_certificates,target=/run/build/ca.crt \
    if [ -s /run/build/ca.crt ]; then export PIP_CERT=/run/build/ca.crt; fi; \
    [ -z "${CUDA}" ] || scripts/install_nvcc.sh
COPY . .
RUN --mount=type=secret,id=pip_conf,target=/etc/pip.conf \
    --mount=type=secret,id=ca_certificates,target=/run/build/ca.crt \
    python3 -m venv /opt/gear_reverb \
    && if [ -s /run/build/ca.crt ]; then export PIP_CERT=/run/build/ca.crt; fi \
    && /opt/gear_reverb/bin/pip install --no-cache-dir ".${EXTRAS:+[${EXTRAS}]}" \
    && strip --strip-unneeded /opt/gear_reverb/lib/python3*/site-packages/gear_reverb/*.so
# The packages that hold the shared libraries which the module needs.
RUN ldd /opt/gear_reverb/lib/python3*/site-packages/gear_reverb/_native*.so \
    | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p' | xargs -n1 realpath | xargs -n1 dpkg-query -S 2>/dev/null \
    | cut -d: -f1 | sort -u > /opt/gear_reverb/system_packages.txt

FROM ${BASE_IMAGE}
RUN --mount=type=secret,id=apt_conf,target=/etc/apt/apt.conf.d/99build \
    --mount=type=secret,id=ca_certificates,target=/run/build/ca.crt \
    --mount=type=bind,from=build,source=/opt/gear_reverb,target=/opt/gear_reverb \
    apt-get update \
    && DEBIAN_FRONTEND=noninteractive xargs -a /opt/gear_reverb/system_packages.txt \
       apt-get install -y --no-install-recommends python3 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin
COPY --from=build /opt/gear_reverb /opt/gear_reverb
RUN useradd --uid 10001 --user-group --home-dir /data --create-home --shell /usr/sbin/nologin reverb
ENV PATH=/opt/gear_reverb/bin:$PATH PYTHONUNBUFFERED=1
USER reverb
# Checkpoints, if the configuration asks for them, belong here.
WORKDIR /data
VOLUME /data
EXPOSE 8000
ENV GEAR_REVERB_PORT=8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python3", "-c", "import os, gear_reverb; gear_reverb.Client('localhost:' + os.environ['GEAR_REVERB_PORT']).server_info(timeout=4)"]
# PID 1, so that it gets the SIGTERM of `docker stop`, on which it ends the calls in progress.
STOPSIGNAL SIGTERM
ENTRYPOINT ["reverb_server"]
